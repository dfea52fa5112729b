// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace atp::protocol {

struct ChannelConfig;

// Rules of a channel that experiments replace. In the product ChannelConfig::policy is nullptr, and the protocol's own
// rules hold. The laboratory implements this interface (src/lab/policy).
//
// Ownership: the workers and servers of a channel borrow the object; it must outlive them.
// Threads: several threads may call it at the same time, one for each channel.
// Failure: none. If the members of a channel compute different indices, their fragments collide and the sums complete
//   at the server.
class PolicyHooks {
  public:
    virtual ~PolicyHooks() = default;

    // Aggregator index of a slot, 0 to W - 1. `attempt` counts from 0; a slot that collides tries the next one.
    [[nodiscard]] virtual std::uint32_t index(const ChannelConfig& channel, std::uint32_t slot,
                                              std::uint32_t attempt) const = 0;
    // True: congestion and loss do not change the window.
    [[nodiscard]] virtual bool keeps_window() const = 0;
};

}  // namespace atp::protocol
