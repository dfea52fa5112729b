// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "protocol/archive.h"
#include "switchml/job.h"
#include "switchml/packet.h"

namespace atp::switchml {

struct SwitchConfig {
    std::uint32_t slots = 4096;  // of the pool, of which every job has a part for itself; each is two copies
    std::uint32_t lanes = switchml::paper_lanes;  // of a copy
};

// What became of one packet.
enum class Event : std::uint8_t {
    gathered,   // added, others are missing: absorbed
    completed,  // added, and it was the last: it leaves as the result, to every worker
    duplicate,  // in already, others are missing: absorbed
    answered,   // in already, and complete: it leaves as the result, to its worker
    late,       // of a fragment that every worker has the result of: dropped
    ahead,      // of a fragment that nobody can have come to: dropped
    misfit,     // of a shape that its job never has: dropped
    forged,     // of no job here: dropped
    refused,    // undecodable: dropped
};
inline constexpr std::size_t event_count = 9;
static_assert(static_cast<std::size_t>(Event::refused) + 1 == event_count);

[[nodiscard]] std::string_view to_string(Event event);

enum class Route : std::uint8_t { drop, worker, everybody };

struct Verdict {
    Route route = Route::drop;
    Event event = Event::refused;
    std::uint8_t job = 0;
    std::uint8_t worker = 0;  // Route::worker: whose it is
};

struct SwitchCounters {
    std::array<std::uint64_t, event_count> events{};
    std::array<std::uint64_t, switchml::decode_error_count> refused{};  // by reason
    std::uint64_t overflows = 0;                                        // packets that left 32 bits behind

    [[nodiscard]] std::uint64_t count(Event event) const { return events[static_cast<std::size_t>(event)]; }
};

// SwitchML's switch: a pool of slots, of which each job has a part to itself, as long as it is here (§6, tenancy).
//
// Calling order: admit() jobs; handle_packet() for whatever arrives; send it on as the verdict says, to one worker or a
// copy to each of the job's. It never sends by itself, has no timers and knows no time: who misses something sends
// again. Owns: its pool, claimed at construction; never grows. Borrows a packet for the length of a call.
// Threads: none. Failure: what cannot be decoded or belongs to no job is dropped and counted; nothing else can fail.
//
// Sums saturate. Where one does, or a packet says that a number did not fit its lane, the result says so.
class Switch {
  public:
    explicit Switch(const SwitchConfig& config);

    // Gives the job its slots. False when there is no such row of free slots, its packets are longer than a slot is,
    // or the job is here already and another.
    [[nodiscard]] bool admit(const JobConfig& config);
    void dismiss(std::uint8_t job);

    // The packet is rewritten in place where it leaves again, and its length stays.
    Verdict handle_packet(std::span<std::byte> bytes);
    // Forgets every sum, as a restart does. Jobs stay; what they were doing ends at their deadline.
    void clear();

    [[nodiscard]] const SwitchConfig& config() const { return config_; }
    [[nodiscard]] const SwitchCounters& counters() const { return counters_; }
    // Both of a job that is not here: nullptr.
    [[nodiscard]] const SwitchCounters* job_counters(std::uint8_t job) const;
    [[nodiscard]] const JobConfig* job_config(std::uint8_t job) const;
    [[nodiscard]] std::uint32_t free_slots() const;
    // What a slot of so many lanes takes of memory.
    [[nodiscard]] static constexpr std::uint64_t bytes_of_slot(std::uint32_t lanes) {
        return 2 * (sizeof(Copy) + std::uint64_t{lanes} * switchml::int32_lane_bytes);
    }

    template <class Archive>
    void persist(Archive& archive);

  private:
    struct Job {
        JobConfig config;
        std::uint32_t first_slot = 0;
        SwitchCounters counters;

        [[nodiscard]] std::uint32_t end_slot() const { return first_slot + config.slots(); }
    };

    // One of the two copies of a slot; the lanes lie elsewhere. Of the paper's three arrays, count and seen.
    struct Copy {
        std::uint64_t seen = 0;
        std::uint32_t offset = 0;   // of the last fragment begun
        std::uint8_t gathered = 0;  // modulo the number of workers: 0 is complete, or not begun
        bool overflowed = false;

        [[nodiscard]] bool complete() const { return gathered == 0; }
    };

    // Where a worker's packet stands towards what its copy holds.
    enum class Standing : std::uint8_t { absent, present, late, ahead };

    using Packet = switchml::Packet;

    [[nodiscard]] std::optional<std::uint32_t> room_for(std::uint32_t slots) const;
    void reset(const Job& job);
    [[nodiscard]] static bool fits(const JobConfig& config, const Packet& packet);
    Verdict judge(Job& job, Packet& packet);
    [[nodiscard]] static Standing standing(const JobConfig& config, const Packet& packet, const Copy& copy,
                                           const Copy& other);
    Verdict gather(Job& job, Packet& packet);
    void add(Job& job, const Packet& packet, Copy& copy);
    void emit(const Job& job, Packet& packet, Copy& copy);
    void count(Job& job, Event event);

    [[nodiscard]] static std::uint64_t bit_of(const Packet& packet) { return std::uint64_t{1} << packet.header.worker; }
    [[nodiscard]] std::size_t index_of(const Job& job, std::uint32_t slot, unsigned version) const {
        return 2 * std::size_t{job.first_slot + slot} + version;
    }
    [[nodiscard]] Copy& copy_of(const Job& job, const Packet& packet, bool other = false) {
        return copies_[index_of(job, packet.header.slot, packet.header.version() ^ (other ? 1U : 0U))];
    }
    [[nodiscard]] std::span<std::int32_t> lanes_of(const Copy& copy) {
        return std::span(lanes_).subspan(static_cast<std::size_t>(&copy - copies_.data()) * config_.lanes,
                                         config_.lanes);
    }

    SwitchConfig config_;
    std::vector<Copy> copies_;
    std::vector<std::int32_t> lanes_;
    std::vector<std::byte> integers_;  // of one packet in float16, as integers
    std::array<std::optional<Job>, 256> jobs_;
    SwitchCounters counters_;
};

template <class Archive>
void Switch::persist(Archive& archive) {
    for (Copy& copy : copies_) {
        archive.value(copy.seen), archive.value(copy.offset), archive.value(copy.gathered);
        archive.value(copy.overflowed), archive.bytes(std::as_writable_bytes(lanes_of(copy)));
    }
}

}  // namespace atp::switchml
