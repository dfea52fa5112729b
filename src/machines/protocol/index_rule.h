// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace atp::protocol {

struct ChannelConfig;

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

    // Aggregator index of a slot, 0 to W - 1. `attempt` counts from 0; a slot that collides tries the next one.
    [[nodiscard]] virtual std::uint32_t index(const ChannelConfig& channel, std::uint32_t slot,
                                              std::uint32_t attempt) const = 0;
};

}  // namespace atp::protocol
