// SPDX-License-Identifier: Apache-2.0
// One direction of a switch port that does not exist: a rate, a queue, an ECN threshold, a share of packets lost.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace atp::emulation {

// What a UDP payload costs beside itself: Ethernet's header and checksum, IPv4's and UDP's headers.
inline constexpr std::uint32_t frame_overhead_bytes = 14 + 4 + 20 + 8;
// With the preamble and the gap between frames, which take time on a cable but no room in a queue.
inline constexpr std::uint32_t cable_overhead_bytes = frame_overhead_bytes + 8 + 12;

// Whatever the configuration says, a queue is no longer.
inline constexpr std::uint64_t most_queue_bytes = std::uint64_t{1} << 30;

struct PortConfig {
    std::int64_t rate_bits_per_s = 0;  // 0: no cable, no time, no queue
    // A packet that would make the queue longer is dropped, so it must have room for the longest packet.
    // 0: nothing is dropped here below most_queue_bytes.
    std::uint64_t queue_bytes = 0;
    std::uint64_t ecn_bytes = 0;  // a packet that finds more than this in the queue is marked; 0: none is
    double loss = 0;              // the share of packets, 0 to 1, that the cable loses
    std::uint32_t overhead_bytes = frame_overhead_bytes;  // of each packet, added to its payload wherever bytes count
    // A packet that departs so soon passes at once where none is held before it, which spares an idle port the
    // coarseness of timers. The rate over any longer time is kept.
    Duration early{0};
};

// False: a port of this configuration would let everything pass unchanged.
[[nodiscard]] bool emulates(const PortConfig& config);

enum class Verdict : std::uint8_t {
    pass_now,
    hold,       // until `departs`
    drop_full,  // the queue has no room
    drop_loss   // the cable lost it, after it took its room in the queue and its time on the cable
};

struct Admission {
    Verdict verdict = Verdict::pass_now;
    bool mark = false;  // it found the queue above the threshold: to be CE from now on
    Time departs{};     // when its last bit is on the cable
};

// Grows only.
struct PortCounters {
    std::uint64_t passed = 0;  // packets, held ones included
    std::uint64_t bytes = 0;   // theirs, with the overhead
    std::uint64_t marked = 0;  // of them
    std::uint64_t dropped_full = 0;
    std::uint64_t dropped_loss = 0;

    PortCounters& operator+=(const PortCounters& other);
};

// First in, first out at a fixed rate: a packet's departure is known when it arrives, so the queue is one number, the
// time until which the cable is busy, and the packets themselves wait elsewhere (HeldPackets). That time is kept to the
// fraction of a nanosecond, so no rounding adds up.
//
// Calling order: release what is due at `now`, then admit() each packet at `now`. Time must not run backwards.
// Departures of one port never decrease, so whoever releases in order of departure keeps the order of packets.
// Owns: nothing. Threads: one. Failure: none; a packet that was admitted but then could not be held took its time.
class EmulatedPort {
  public:
    // The same seed and stream lose the same packets; ports that share a seed differ in the stream.
    EmulatedPort(const PortConfig& config, std::uint64_t seed, std::uint64_t stream = 0);

    // A packet with a payload of `bytes` arrives.
    [[nodiscard]] Admission admit(std::uint32_t bytes, Time now);

    // What waits at `now`, the packet that is being sent included: its part that is still to be sent.
    [[nodiscard]] std::uint64_t backlog_bytes(Time now) const;
    [[nodiscard]] bool idle(Time now) const { return backlog_work(now) == 0; }
    [[nodiscard]] const PortCounters& counters() const { return counters_; }

  private:
    [[nodiscard]] std::uint64_t backlog_work(Time now) const;
    [[nodiscard]] Time occupy(std::uint64_t wire_bytes, Time now);
    [[nodiscard]] bool loses();

    // Work is bits times nanoseconds a second: what is to be sent, so that dividing it by the rate gives nanoseconds.
    std::uint64_t rate_bits_per_s_;
    std::uint64_t queue_bytes_;
    std::uint64_t ecn_work_;
    std::uint64_t loss_threshold_;  // of 2^53
    std::uint32_t overhead_bytes_;
    Duration early_;
    std::uint64_t chance_;  // SplitMix64's state
    // Busy until this time and for the rest of work after it, which takes less than a nanosecond.
    Time busy_until_ = Time::min();
    std::uint64_t rest_work_ = 0;
    Time held_until_ = Time::min();  // the departure of the packet held last
    PortCounters counters_;
};

}  // namespace atp::emulation
