// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "wire/format.h"

namespace atp::protocol {

struct ChannelConfig;

// Slots of a channel for each packet that it may have in flight.
inline constexpr std::uint32_t slots_per_packet = 4;

// Aggregators that a channel asks for: one for each packet in flight, and at least 8. More would take memory from other
// jobs, and where memory is short, the job's own fragments would collide (H107, docs/spec/hazards.md#h107).
[[nodiscard]] constexpr std::uint32_t usual_base_slots(std::uint32_t slots) {
    if (slots == 1U << ATP_WINDOW_LOG2_MAX) return slots;  // and perhaps as many packets
    return std::max(slots / slots_per_packet, std::min(slots, 8U));
}

// How the slots of a channel find their aggregators, if somebody assigns them and the hash of the protocol does not. It
// is asked when a slot gets an aggregator, not for each packet.
//
// Ownership: the workers and servers of a channel borrow the object; it must outlive them.
// Threads: several threads may call it at the same time, one for each channel.
// Failure: none. If the members of a channel compute different indices, their fragments collide and the sums complete
//   at the server.
class IndexRule {
  public:
    virtual ~IndexRule() = default;

    // Slots of a channel with an index of their own: a power of two, at most `slots`.
    [[nodiscard]] virtual std::uint32_t base_slots(std::uint32_t slots) const { return usual_base_slots(slots); }
    // Aggregator index of a base slot. `attempt` counts from 0; a slot that collides tries the next one.
    [[nodiscard]] virtual std::uint32_t index(const ChannelConfig& channel, std::uint32_t slot,
                                              std::uint32_t attempt) const = 0;
};

}  // namespace atp::protocol
