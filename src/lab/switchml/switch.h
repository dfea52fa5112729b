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
    std::uint32_t slots = 4096;  // of the pool, which is divided among the jobs; each slot has two copies
    std::uint32_t lanes = switchml::paper_lanes;  // per copy
};

// Result of one packet.
enum class Event : std::uint8_t {
    gathered,   // added; other workers are missing: absorbed
    completed,  // added as the last worker: sent as the result to every worker
    duplicate,  // already included; other workers are missing: absorbed
    answered,   // already included in a complete sum: sent as the result to its worker
    late,       // every worker has the result of its fragment: dropped
    ahead,      // no worker can have reached its fragment: dropped
    misfit,     // of a shape that its job does not use: dropped
    forged,     // of an unknown job: dropped
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
    std::uint8_t worker = 0;  // Route::worker: the destination
};

struct SwitchCounters {
    std::array<std::uint64_t, event_count> events{};
    std::array<std::uint64_t, switchml::decode_error_count> refused{};  // by reason
    std::uint64_t overflows = 0;                                        // packets that caused a sum to exceed 32 bits

    [[nodiscard]] std::uint64_t count(Event event) const { return events[static_cast<std::size_t>(event)]; }
};

// A SwitchML switch: a pool of slots. Each job has a part of the pool to itself while it is admitted (§6, tenancy).
//
// Sums saturate. If a sum saturates, or a packet reports that a value did not fit its lane, the result carries
// flag_overflow.
//
// Ownership: owns the pool, allocated at construction; it never grows. Borrows a packet for the duration of a call.
// Calling order: admit() jobs; handle_packet() for each packet; then send the packet as the verdict requires, to one
//   worker or a copy to each worker of the job. There are no timers: a worker that misses a result resends.
// Threads: none.
// Failure: packets that cannot be decoded or belong to no job are dropped and counted. Nothing else can fail.
class Switch {
  public:
    explicit Switch(const SwitchConfig& config);

    // Assigns slots to the job. False if there are not enough consecutive free slots, if the job's packets have more
    // lanes than a slot, or if the job's number is in use with another configuration.
    [[nodiscard]] bool admit(const JobConfig& config);
    void dismiss(std::uint8_t job);

    // If the verdict sends the packet, the packet was rewritten in place; its length is unchanged.
    Verdict handle_packet(std::span<std::byte> bytes);
    // Clears every sum, as a restart does. Jobs stay admitted; operations in flight end at their deadlines.
    void clear();

    [[nodiscard]] const SwitchConfig& config() const { return config_; }
    [[nodiscard]] const SwitchCounters& counters() const { return counters_; }
    // Both return nullptr for an unknown job.
    [[nodiscard]] const SwitchCounters* job_counters(std::uint8_t job) const;
    [[nodiscard]] const JobConfig* job_config(std::uint8_t job) const;
    [[nodiscard]] std::uint32_t free_slots() const;
    // Memory of a slot with `lanes` lanes, in bytes.
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

    // One of the two copies of a slot: `count` and `seen` of the paper's three arrays. The lanes are in lanes_.
    struct Copy {
        std::uint64_t seen = 0;
        std::uint32_t offset = 0;   // of the fragment begun last
        std::uint8_t gathered = 0;  // modulo the number of workers; 0: complete or not begun
        bool overflowed = false;

        [[nodiscard]] bool complete() const { return gathered == 0; }
    };

    // Relation of a worker's packet to the fragment of its copy.
    enum class Standing : std::uint8_t { absent, present, late, ahead };

    using Packet = switchml::Packet;

    [[nodiscard]] std::optional<std::uint32_t> room_for(std::uint32_t slots) const;
    void reset(const Job& job);
    [[nodiscard]] static bool fits(const JobConfig& config, const Packet& packet);
    Verdict assess(Job& job, Packet& packet);
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
    std::vector<std::byte> integers_;  // of one float16 packet, converted to integers
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
