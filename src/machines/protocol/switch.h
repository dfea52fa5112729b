// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/time.h"
#include "protocol/archive.h"
#include "protocol/decide.h"
#include "protocol/variant.h"
#include "wire/packet.h"

namespace atp::protocol {
inline namespace ATP_VARIANT {

struct SwitchConfig {
    std::uint32_t aggregators = 4096;  // entries of the table, shared by all jobs
    std::uint32_t lanes = 352;         // of one aggregator; packets with more are forwarded to the server
    std::uint32_t jobs = 64;           // how many can be admitted at once
    // An aggregator untouched for this long is abandoned: anyone may take it. Longer than any pause of a live fragment
    // (a straggler's worth), shorter than a tenant would wait for memory.
    Duration ageing = std::chrono::milliseconds(500);
};

// Memory that one takes: its state, and its lanes in whole lines of 64 bytes.
[[nodiscard]] constexpr std::uint64_t aggregator_bytes(std::uint32_t lanes) {
    return sizeof(atp_aggregator) + (std::uint64_t{lanes} * ATP_LANE_BYTES + 63) / 64 * 64;
}

enum class Route : std::uint8_t { drop, up, down };  // up: towards the server; down: towards `worker` and `units`

// What became of one packet.
struct Verdict {
    Route route = Route::drop;
    std::uint8_t event = ATP_EVENT_PASSED;  // atp_switch_event
    std::uint16_t worker = ATP_WORKER_ALL;  // down: one worker, or ATP_WORKER_ALL of the units
    std::uint32_t units = 0;                // down: bits of bitmap1
    std::uint32_t job = 0;
};

// A packet in the driver's memory: rewritten in place, `size` with it.
struct Parcel {
    std::byte* data = nullptr;
    std::uint32_t size = 0;
    std::uint32_t capacity = 0;  // a FLUSH may grow to header + lanes; without room it is dropped
    // The IP header said CE. A driver marks what it forwards downwards likewise; upwards the flag in the header carries
    // it.
    bool congested = false;
    Verdict verdict;  // out
};

struct SwitchCounters {
    std::array<std::uint64_t, ATP_EVENT_COUNT> events{};  // by atp_switch_event
    std::array<std::uint64_t, wire::decode_error_count> refused{};
    std::uint64_t forged = 0;     // of no job admitted here, or with a wrong token
    std::uint64_t ecn = 0;        // packets that came with a mark
    std::uint64_t overflows = 0;  // additions that left 32 bits
    std::uint64_t no_room = 0;    // flushes that the driver gave no room to grow
};

// The software switch: the table of aggregators shared by all admitted jobs, and atp_decide() over it.
//
// Calling order: admit() jobs; handle_batch() (or handle_packet()) for whatever arrives; forward each parcel as its
// verdict says. It never sends by itself and has no timers: a packet in, at most one packet out, the same buffer.
// Owns: its table, claimed at construction; never grows. Borrows parcels for the length of a call.
// Threads: none. Shard by giving each thread a switch of its own and a hash of the aggregator index.
// Failure: packets that cannot be decoded or belong to no admitted job are dropped and counted; nothing else can fail.
class Switch {
  public:
    explicit Switch(const SwitchConfig& config);

    // `level` is the hop that this switch serves for the job: 0 below racks' workers, 1 in front of the server, 2 where
    // it only forwards. False when the table of jobs is full or the job is here already with another token.
    [[nodiscard]] bool admit(std::uint32_t job, std::uint32_t token, std::uint8_t level);
    void dismiss(std::uint32_t job);

    void handle_batch(std::span<Parcel> parcels, Time now);
    void handle_packet(Parcel& parcel, Time now);
    // Forgets every aggregator, as a restart does. Jobs stay.
    void clear();

    [[nodiscard]] const SwitchConfig& config() const { return config_; }
    [[nodiscard]] const SwitchCounters& counters() const { return counters_; }
    // nullptr for a job that is not admitted.
    [[nodiscard]] const SwitchCounters* job_counters(std::uint32_t job) const;
    // `visit` gets each admitted job's number and counters.
    template <class Visit>
    void for_each_job(Visit&& visit) const {
        for (const Job& job : jobs_) {
            if (job.token != 0) visit(job.job, job.counters);
        }
    }
    [[nodiscard]] std::uint32_t occupied() const;  // walks the table: for tests and statistics
    [[nodiscard]] const atp_aggregator& aggregator(std::uint32_t index) const { return table_[index]; }

    template <class Archive>
    void persist(Archive& archive) {
        for (std::uint32_t i = 0; i < config_.aggregators; ++i) {
            atp_aggregator& a = table_[i];
            archive.value(a.status), archive.value(a.job), archive.value(a.token), archive.value(a.channel);
            archive.value(a.seq);
            if (a.status == ATP_AGGREGATOR_FREE) continue;  // only the id it remembers matters
            archive.value(a.unit), archive.value(a.bitmap), archive.value(a.lanes);
            archive.value(a.purpose), archive.value(a.flags), archive.stamp_us(a.touched_us);
            archive.bytes(std::as_writable_bytes(lanes_of(i).first(a.lanes)));
        }
    }

  private:
    struct Job {
        std::uint32_t job = 0;
        std::uint32_t token = 0;  // 0: the entry is empty
        std::uint8_t level = 0;
        SwitchCounters counters;
    };

    [[nodiscard]] Job* find_job(std::uint32_t job);
    [[nodiscard]] const Job* find_job(std::uint32_t job) const;
    Job* receive(Parcel& parcel, wire::Packet& packet);
    void decide(Parcel& parcel, wire::Packet& packet, Job& job, Time now);
    void pass_without_aggregator(Parcel& parcel, wire::Packet& packet, Job& job);
    [[nodiscard]] std::uint32_t flush_needs(const atp_header& header) const;
    bool move_lanes(const wire::Packet& packet, std::uint8_t action, std::uint32_t index);
    void finish(Parcel& parcel, const wire::Packet& packet, atp_decision decision, Job& job);
    [[nodiscard]] std::span<std::int32_t> lanes_of(std::uint32_t index) const {
        return {lanes_.get() + std::size_t{index} * lane_stride_, config_.lanes};
    }

    struct FreeLanes {
        void operator()(std::int32_t* lanes) const;
    };

    SwitchConfig config_;
    std::vector<atp_aggregator> table_;
    std::size_t lane_stride_ = 0;  // a multiple of a cache line
    std::unique_ptr<std::int32_t[], FreeLanes> lanes_;
    std::vector<Job> jobs_;
    SwitchCounters counters_;
};

}  // namespace ATP_VARIANT
}  // namespace atp::protocol
