// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include "base/siphash.h"
#include "control/channel_key.h"

namespace atp::control {

// What a switch gives to the members of a channel that was ready there. A process of the switch that starts later knows
// by it that the channel is not new (H69). Two codes of 64 bits, whose key lasts longer than one process.
using Ticket = std::array<std::byte, 16>;

// Never zero.
[[nodiscard]] Ticket ticket_of(const Secret& key, const ChannelKey& channel);

}  // namespace atp::control
