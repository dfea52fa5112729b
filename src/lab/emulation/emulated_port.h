// SPDX-License-Identifier: Apache-2.0
// One direction of an emulated switch port: a rate, a queue, an ECN threshold and a loss probability.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "random/random.h"

namespace atp::emulation {

// Bytes that a UDP payload adds to a queue: Ethernet header and FCS, IPv4 header, UDP header.
inline constexpr std::uint32_t frame_overhead_bytes = 14 + 4 + 20 + 8;
// Bytes that a UDP payload adds on a cable: the same, and the preamble and the gap between frames.
inline constexpr std::uint32_t cable_overhead_bytes = frame_overhead_bytes + 8 + 12;

// Upper bound of every queue, regardless of the configuration.
inline constexpr std::uint64_t most_queue_bytes = std::uint64_t{1} << 30;

struct PortConfig {
    std::int64_t rate_bits_per_s = 0;  // 0: no transmission time and no queue
    // Size of the queue. A packet that does not fit is dropped, so the size must be at least that of the longest
    // packet.
    // 0: most_queue_bytes.
    std::uint64_t queue_bytes = 0;
    std::uint64_t ecn_bytes = 0;                          // packets that find a longer queue are marked; 0: none
    double loss = 0;                                      // probability per packet, 0 to 1, of a loss on the cable
    std::uint32_t overhead_bytes = frame_overhead_bytes;  // added to each payload wherever bytes are counted
    // If a packet departs within this time and no packet is held before it, it passes at once. An idle port is thus
    // independent of the resolution of timers. The rate over any longer interval is unchanged.
    Duration early{0};
};

// False: a port of this configuration passes every packet unchanged.
[[nodiscard]] bool emulates(const PortConfig& config);

enum class Verdict : std::uint8_t {
    pass_now,
    hold,       // until `departs`
    drop_full,  // the queue is full
    drop_loss   // lost on the cable, after occupying queue and cable
};

struct Admission {
    Verdict verdict = Verdict::pass_now;
    bool mark = false;  // set CE: the queue was longer than the threshold
    Time departs{};     // time at which the last bit is on the cable
};

// Counters of a port. They never decrease.
struct PortCounters {
    std::uint64_t passed = 0;  // packets that pass at once or after they were held
    std::uint64_t bytes = 0;   // of the passed packets, with overhead
    std::uint64_t marked = 0;  // passed packets with a congestion mark
    std::uint64_t dropped_full = 0;
    std::uint64_t dropped_loss = 0;

    PortCounters& operator+=(const PortCounters& other);
};

// A queue that is first in, first out at a fixed rate. The departure of a packet is known on arrival. The queue is
// therefore one number: the time until which the cable is busy. The packets themselves wait in DelayedPackets. The time
// includes fractions of a nanosecond, so rounding does not accumulate.
//
// Ownership: owns no packets.
// Calling order: release the packets that are due at `now`, then admit() each packet at `now`. `now` must not decrease.
//   Departures of one port never decrease; a caller that releases in order of departure keeps the order of packets.
// Threads: one.
// Failure: none. A packet that was admitted but could not be held has used its transmission time.
class EmulatedPort {
  public:
    // Equal seed and stream give equal losses. Ports that share a seed need different streams.
    EmulatedPort(const PortConfig& config, std::uint64_t seed, std::uint64_t stream = 0);

    // Decides about an arriving packet with a payload of `bytes`.
    [[nodiscard]] Admission admit(std::uint32_t bytes, Time now);

    // Bytes in the queue at `now`, including the unsent part of the packet in transmission.
    [[nodiscard]] std::uint64_t backlog_bytes(Time now) const;
    [[nodiscard]] bool idle(Time now) const { return backlog_work(now) == 0; }
    [[nodiscard]] const PortCounters& counters() const { return counters_; }

  private:
    [[nodiscard]] std::uint64_t backlog_work(Time now) const;
    [[nodiscard]] Time occupy(std::uint64_t wire_bytes, Time now);
    [[nodiscard]] bool loses();

    // Work is in units of bit * ns/s: work divided by the rate in bit/s is a time in ns.
    std::uint64_t rate_bits_per_s_;
    std::uint64_t queue_bytes_;
    std::uint64_t ecn_work_;
    std::uint64_t loss_threshold_;  // in units of 2^-53
    std::uint32_t overhead_bytes_;
    Duration early_;
    Random random_;
    // The cable is busy until this time, and then for rest_work_, which takes less than a nanosecond.
    Time busy_until_ = Time::min();
    std::uint64_t rest_work_ = 0;
    Time held_until_ = Time::min();  // departure of the packet held last
    PortCounters counters_;
};

}  // namespace atp::emulation
