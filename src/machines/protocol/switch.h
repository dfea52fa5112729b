// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/counters.h"
#include "base/time.h"
#include "protocol/archive.h"
#include "protocol/decide.h"
#include "protocol/slice.h"
#include "protocol/variant.h"
#include "wire/packet.h"

namespace atp::protocol {

struct SwitchCounters {
    std::array<std::uint64_t, ATP_EVENT_COUNT> events{};  // by atp_switch_event
    std::array<std::uint64_t, wire::decode_error_count> refused{};
    std::uint64_t forged = 0;     // of a job that is not admitted, or with another token
    std::uint64_t ecn = 0;        // packets that arrived with CE
    std::uint64_t overflows = 0;  // additions that overflowed
    std::uint64_t no_room = 0;    // FLUSHes dropped for lack of buffer capacity
    std::uint64_t strangers = 0;  // dropped because PacketBuffer::is_stranger
};

// tools/write_events writes the counters of a switch from src/events.toml.
// Packets by what the switch did with them, under the names that operators see. `refused` is by reason:
// wire::to_string().
inline constexpr std::array switch_fields{
    counter<&SwitchCounters::events, ATP_EVENT_CLAIMED>("claimed"),
    counter<&SwitchCounters::events, ATP_EVENT_ADDED>("added"),
    counter<&SwitchCounters::events, ATP_EVENT_COMPLETED>("completed"),
    counter<&SwitchCounters::events, ATP_EVENT_SINGLE>("single"),
    counter<&SwitchCounters::events, ATP_EVENT_COLLIDED>("collisions"),
    counter<&SwitchCounters::events, ATP_EVENT_BYPASSED>("bypassed"),
    counter<&SwitchCounters::events, ATP_EVENT_LATE>("late"),
    counter<&SwitchCounters::events, ATP_EVENT_DUPLICATE>("duplicates"),
    counter<&SwitchCounters::events, ATP_EVENT_REEMITTED>("reemitted"),
    counter<&SwitchCounters::events, ATP_EVENT_RESENT>("resends"),
    counter<&SwitchCounters::events, ATP_EVENT_FETCHED>("fetched"),
    counter<&SwitchCounters::events, ATP_EVENT_RELEASED>("released"),
    counter<&SwitchCounters::events, ATP_EVENT_EXPIRED>("expired"),
    counter<&SwitchCounters::events, ATP_EVENT_TAKEN_OVER>("taken_over"),
    counter<&SwitchCounters::events, ATP_EVENT_SUPERSEDED>("superseded"),
    counter<&SwitchCounters::events, ATP_EVENT_FLUSHED>("flushes"),
    counter<&SwitchCounters::events, ATP_EVENT_CLOSED>("closed"),
    counter<&SwitchCounters::events, ATP_EVENT_MISFIT>("misfits"),
    counter<&SwitchCounters::events, ATP_EVENT_PASSED>("passed"),
    counter<&SwitchCounters::ecn>("ecn"),
    counter<&SwitchCounters::overflows>("overflows"),
    counter<&SwitchCounters::no_room>("no_room"),
    counter<&SwitchCounters::strangers>("strangers"),
    counter<&SwitchCounters::forged>("forged"),
};
// End of the written part.
static_assert(names_all(switch_fields, wire::decode_error_count));

inline namespace ATP_VARIANT {

struct SwitchConfig {
    std::uint32_t aggregators = 4096;  // entries of the table, which all jobs share
    std::uint32_t lanes = 352;         // per aggregator; a gradient with more is forwarded to the server
    std::uint32_t jobs = 64;           // jobs admitted at the same time
    // An aggregator that is untouched for this long is abandoned, and any fragment may claim it. The time must be
    // longer than a straggler delays a fragment, and shorter than another job may wait for memory.
    Duration ageing = std::chrono::milliseconds(500);
};

// Bytes of one aggregator: its state, and its lanes in whole cache lines of 64 bytes.
[[nodiscard]] constexpr std::uint64_t aggregator_bytes(std::uint32_t lanes) {
    return sizeof(atp_aggregator) + (std::uint64_t{lanes} * ATP_LANE_BYTES + 63) / 64 * 64;
}

enum class Route : std::uint8_t { drop, up, down };  // up: to the server; down: to `worker` or `units` of the Verdict

// Decision about one packet.
struct Verdict {
    Route route = Route::drop;
    std::uint8_t event = ATP_EVENT_PASSED;  // atp_switch_event
    std::uint16_t worker = ATP_WORKER_ALL;  // down: one worker, or ATP_WORKER_ALL for all of `units`
    std::uint32_t units = 0;                // down: bits of bitmap1
    std::uint32_t job = 0;
    // COMPLETED: the contribution of this packet, as bits of its level, and the time since the one before was added.
    std::uint32_t completed_by = 0;
    std::uint32_t alone_us = 0;
};

// A packet buffer of the driver. The switch rewrites the packet and its `size` in place.
struct PacketBuffer {
    std::byte* data = nullptr;
    std::uint32_t size = 0;
    std::uint32_t capacity = 0;  // bytes; a FLUSH that would become longer is dropped
    // The IP header carried CE. The driver also marks this packet if it forwards it downwards. Upwards, the switch
    // sets the ECN flag of a gradient instead.
    bool congested = false;
    // Not from the neighbour that may send it: the switch drops it, and counts it for the job that it names.
    bool is_stranger = false;
    Verdict verdict;  // output
};

// Software switch: a table of aggregators that all admitted jobs share, and atp_decide() on it. With tenants, each job
// has a slice of the table (protocol/slice.h); without, each has all of it.
//
// Ownership: owns the table, allocated at construction; it never grows. Borrows packet buffers for the duration of a
//   call.
// Calling order: admit() jobs, then set_slice() if they share the table with other tenants; pass received packets to
// handle_batch() or handle_packet(); forward each packet as its
//   verdict requires. Each packet gives at most one packet, in the same buffer. The switch has no timers.
// Threads: none. For several threads, give each a switch of its own, and send all packets of one channel to one
//   thread.
// Failure: the constructor throws std::bad_alloc. A packet is dropped and counted if it does not decode, if its job
//   is not admitted with its token, if it comes from a stranger, or if it is a FLUSH whose buffer is too small.
class Switch {
  public:
    explicit Switch(const SwitchConfig& config);

    // `level` is the hop that this switch serves for the job: 0 in a rack, 1 in front of the server, 2 if it only
    // forwards. Returns false if the token is 0, the table of jobs is full, or the same job and token are
    // admitted with another level.
    [[nodiscard]] bool admit(std::uint32_t job, std::uint64_t token, std::uint8_t level);
    void dismiss(std::uint32_t job, std::uint64_t token);
    // The first call gives an admitted job its slice. One with another slice begins a change, which end_changes() ends.
    // An aggregator in use stays where it is until it is free.
    void set_slice(std::uint32_t job, std::uint64_t token, const atp_range& slice, std::uint32_t weight);
    void end_changes();
    // Aggregators that fragments of a job with a slice are in, abandoned ones included.
    [[nodiscard]] std::uint32_t held_by(std::uint32_t job, std::uint64_t token) const;
    // nullptr if the job is not admitted.
    [[nodiscard]] const atp_slice* slice_of(std::uint32_t job, std::uint64_t token) const;

    void handle_batch(std::span<PacketBuffer> packet_buffers, Time now);
    void handle_packet(PacketBuffer& packet_buffer, Time now);
    // Frees every aggregator and erases its tombstone, as a restart does. Jobs stay admitted.
    void clear();

    [[nodiscard]] const SwitchConfig& config() const { return config_; }
    [[nodiscard]] const SwitchCounters& counters() const { return counters_; }
    // nullptr if the job is not admitted.
    [[nodiscard]] const SwitchCounters* job_counters(std::uint32_t job, std::uint64_t token) const;
    // Calls visit(job number, counters) for each admitted incarnation of a job.
    template <class Visit>
    void for_each_job(Visit&& visit) const {
        for (const Job& job : jobs_) {
            if (job.token != 0) visit(job.job, job.counters);
        }
    }
    [[nodiscard]] std::uint32_t occupied() const;  // scans the whole table: for tests and statistics
    [[nodiscard]] const atp_aggregator& aggregator(std::uint32_t at) const { return table_[at]; }
    // Where the packet's aggregator is now; nullopt: the packet has none here.
    [[nodiscard]] std::optional<std::uint32_t> place_of(const atp_header& header) const;

    template <class Archive>
    void persist(Archive& archive) {
        for (std::uint32_t i = 0; i < config_.aggregators; ++i) {
            atp_aggregator& a = table_[i];
            archive.value(a.status), archive.value(a.job), archive.value(a.token), archive.value(a.channel);
            archive.value(a.seq);
            if (a.status == ATP_AGGREGATOR_FREE) continue;  // only the tombstone matters
            archive.value(a.unit), archive.value(a.bitmap), archive.value(a.lanes);
            archive.value(a.purpose), archive.value(a.flags), archive.stamp_us(a.touched_us);
            archive.bytes(std::as_writable_bytes(lanes_of(i).first(a.lanes)));
        }
        // A job is named, because an archive may come before its reader admits the jobs. Those without a slice of their
        // own have nothing to keep.
        auto shared = static_cast<std::uint64_t>(std::ranges::count_if(
            jobs_, [](const Job& entry) { return entry.token != 0 && entry.slice.is_shared != 0; }));
        archive.value(shared);
        shared = std::min<std::uint64_t>(shared, jobs_.size());  // a broken archive has any number
        for (std::size_t at = 0; shared != 0; --shared) {
            Job kept;
            if (!Archive::reads) {
                while (jobs_[at].token == 0 || jobs_[at].slice.is_shared == 0) ++at;
                kept = jobs_[at++];
            }
            archive.value(kept.job), archive.value(kept.token);
            kept.slice.is_shared = 1;
            persist_slice(kept.slice, archive);
            Job* const entry = Archive::reads ? find_job(kept.job, kept.token) : nullptr;
            if (entry == nullptr) continue;
            kept.slice.weight = entry->slice.weight;
            entry->slice = kept.slice;
        }
    }

  private:
    struct Job {
        std::uint64_t token = 0;  // 0: empty entry
        std::uint32_t job = 0;
        std::uint8_t level = 0;
        std::uint32_t held = 0;  // aggregators; counted while the job has a slice
        atp_slice slice{};
        SwitchCounters counters;
    };
    static constexpr std::uint32_t no_place = 0xFFFFFFFF;

    template <class Archive>
    static void persist_slice(atp_slice& slice, Archive& archive) {
        for (atp_range* range : {&slice.now, &slice.before}) archive.value(range->base), archive.value(range->size);
        archive.value(slice.passed), archive.value(slice.has_from);
        for (std::uint32_t stream = 0; stream < ATP_SLICE_STREAMS; ++stream) {
            if ((slice.passed >> stream & 1U) != 0) archive.value(slice.reach[stream]);
            if ((slice.has_from >> stream & 1U) != 0) archive.value(slice.from[stream]);
        }
    }

    [[nodiscard]] Job* find_job(std::uint32_t job, std::uint64_t token);
    [[nodiscard]] const Job* find_job(std::uint32_t job, std::uint64_t token) const;
    // A packet of an admitted job, and where its aggregator is.
    struct Received {
        wire::Packet packet;
        Job* job = nullptr;
        std::uint32_t place = no_place;
    };
    void receive(PacketBuffer& packet_buffer, Received& received);
    void find_place(Received& received);
    void decide(PacketBuffer& packet_buffer, Received& received, Time now);
    void count_held(const atp_aggregator& before, const atp_aggregator& after);
    void pass_without_aggregator(PacketBuffer& packet_buffer, wire::Packet& packet, Job& job);
    [[nodiscard]] std::uint32_t flush_needs(std::uint32_t place) const;
    bool move_lanes(const wire::Packet& packet, std::uint8_t action, std::uint32_t place);
    void finish(PacketBuffer& packet_buffer, const wire::Packet& packet, atp_decision decision, Job& job);
    [[nodiscard]] std::span<std::int32_t> lanes_of(std::uint32_t place) const {
        return {lanes_.get() + std::size_t{place} * lane_stride_, config_.lanes};
    }

    struct FreeLanes {
        void operator()(std::int32_t* lanes) const;
    };

    SwitchConfig config_;
    std::vector<atp_aggregator> table_;
    std::size_t lane_stride_ = 0;  // lanes per aggregator, in whole cache lines
    std::unique_ptr<std::int32_t[], FreeLanes> lanes_;
    std::vector<Job> jobs_;  // hash table with linear probing, at most half full
    Job* last_ = nullptr;    // of the last packet: packets arrive in bursts of one job
    SwitchCounters counters_;
};

}  // namespace ATP_VARIANT
}  // namespace atp::protocol
