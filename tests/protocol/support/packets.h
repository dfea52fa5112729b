// SPDX-License-Identifier: Apache-2.0
// Makes and reads the packets of tests: whole datagrams, with lanes as numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "protocol/channel.h"
#include "protocol/membership.h"
#include "wire/packet.h"

namespace atp::testing {

using Bytes = std::vector<std::byte>;
using Lanes = std::vector<std::int32_t>;

[[nodiscard]] Bytes make_packet(const atp_header& header, const Lanes& lanes = {});
[[nodiscard]] Bytes make_float_packet(const atp_header& header, const std::vector<float>& lanes);

// The header in the bytes, whether or not decode() accepts it.
[[nodiscard]] atp_header header_in(std::span<const std::byte> bytes);
[[nodiscard]] Lanes lanes_in(std::span<const std::byte> bytes);
[[nodiscard]] std::vector<float> floats_in(std::span<const std::byte> bytes);

// Header of the first gradient of worker `rank` for `seq`, at attempt 0 of its slot.
[[nodiscard]] atp_header gradient_of(const protocol::ChannelConfig& channel, const protocol::Membership& membership,
                                     std::uint16_t rank, std::uint32_t seq);

// The same for a set of members of one unit, from a switch of level 0; and for whole units, from a switch of level 1.
[[nodiscard]] atp_header gradient_of_members(const protocol::ChannelConfig& channel,
                                             const protocol::Membership& membership, unsigned unit,
                                             std::uint32_t members, std::uint32_t seq);
[[nodiscard]] atp_header gradient_of_units(const protocol::ChannelConfig& channel,
                                           const protocol::Membership& membership, std::uint32_t units,
                                           std::uint32_t seq);

}  // namespace atp::testing
