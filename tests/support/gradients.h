// SPDX-License-Identifier: Apache-2.0
// Headers of the gradients that workers and switches send.
#pragma once

#include <cstdint>

#include "protocol/channel.h"
#include "protocol/membership.h"
#include "wire/packet.h"

namespace atp::testing {

// Header of the gradient of worker `rank` for `seq`, not a resend. The aggregator index is that of attempt 0
// (docs/spec/packet.md#aggregators-and-slots).
[[nodiscard]] atp_header gradient_of(const protocol::ChannelConfig& channel, const protocol::Membership& membership,
                                     std::uint16_t rank, std::uint32_t seq);

// Header of a sum: of `members` of one unit from a switch of level 0, or of whole `units` from a switch of level 1.
[[nodiscard]] atp_header gradient_of_members(const protocol::ChannelConfig& channel,
                                             const protocol::Membership& membership, unsigned unit,
                                             std::uint32_t members, std::uint32_t seq);
[[nodiscard]] atp_header gradient_of_units(const protocol::ChannelConfig& channel,
                                           const protocol::Membership& membership, std::uint32_t units,
                                           std::uint32_t seq);

}  // namespace atp::testing
