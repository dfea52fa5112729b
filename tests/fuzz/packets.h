// SPDX-License-Identifier: Apache-2.0
// Packets for fuzzers of state machines. Most packets decode and have the right job, so that they pass the first checks
// and reach the state. Some fields are arbitrary.
#pragma once

#include <cstddef>
#include <cstdint>

#include "input.h"
#include "protocol/channel.h"
#include "protocol/membership.h"
#include "support/gradients.h"
#include "support/packets.h"

namespace atp::fuzz {

// A channel that is so small that packets often belong to the same fragment and aggregator.
inline constexpr protocol::ChannelConfig small_channel{.job = 1,
                                                       .token = 0x5eed,
                                                       .channel = 0,
                                                       .lanes = 2,
                                                       .window_log2 = 2,
                                                       .audit = false,
                                                       .aggregators = 3,
                                                       .first_seq = 0xfffffffaU};

// A star of three workers, two racks of two workers, or a rack of two workers and a direct worker.
inline protocol::Membership some_membership(Input& input) {
    using protocol::Membership;
    using protocol::Unit;
    switch (input.below(3)) {
        case 0: return *Membership::star(3);
        case 1: return *Membership::racks(2, 2);
        default: return *Membership::make({Unit{.ranks = {0, 1}}, Unit{.ranks = {2}, .direct = true}});
    }
}

// Header of a gradient of one worker. Its fragment is one of `sequences` fragments, the first of which is `first`.
inline atp_header some_gradient(Input& input, const protocol::ChannelConfig& channel,
                                const protocol::Membership& members, std::uint32_t first, std::uint32_t sequences) {
    const auto rank = static_cast<std::uint16_t>(input.below(members.workers()));
    const std::uint32_t seq = first + input.below(sequences);
    return testing::gradient_of(channel, members, rank, seq);
}

// Rewrites some fields. Each bit of a random word selects a field.
inline void mutate(Input& input, atp_header& header) {
    const std::uint32_t which = input.byte() | static_cast<std::uint32_t>(input.byte()) << 8U;
    if ((which & 0x1U) != 0) header.flags = static_cast<std::uint16_t>(input.word() & ATP_FLAG_ALL);
    if ((which & 0x2U) != 0) header.type = input.byte() % (ATP_TYPE_LAST + 2);
    if ((which & 0x4U) != 0) header.lanes = input.byte() % (ATP_INT8_LANES + 2);
    if ((which & 0x8U) != 0) header.hop = input.byte() % (ATP_LEVELS + 2);
    if ((which & 0x10U) != 0) header.index = input.byte() % 5;
    if ((which & 0x20U) != 0) header.bitmap0 = input.byte() % 16;
    if ((which & 0x40U) != 0) header.bitmap1 = input.byte() % 8;
    if ((which & 0x80U) != 0) header.mask0 = input.byte() % 16;
    if ((which & 0x100U) != 0) header.mask1 = input.byte() % 8;
    if ((which & 0x200U) != 0) header.worker = static_cast<std::uint16_t>(input.word());
    if ((which & 0x400U) != 0) header.seq = input.word();
    if ((which & 0x800U) != 0) header.argument = input.word();
    if ((which & 0x1000U) != 0) header.window_log2 = input.byte() % (ATP_WINDOW_LOG2_MAX + 2);
    if ((which & 0x2000U) != 0) header.index = input.word();
    if ((which & 0x4000U) != 0) header.token ^= std::uint64_t{1} << input.below(64);
    if ((which & 0x8000U) != 0) header.channel = input.byte() % 2;
    if (which % 16 == 15) header.part = input.byte(), header.peer = static_cast<std::uint16_t>(input.word());
}

// The packet with lanes of `value`: usually the number of lanes that its type requires, sometimes another number.
inline Bytes to_packet(Input& input, const atp_header& header, std::uint32_t value, std::size_t usual_lanes) {
    const bool carries = header.type == ATP_TYPE_GRADIENT || header.type == ATP_TYPE_ACK;
    std::size_t lanes = carries ? usual_lanes : 0;
    const std::uint8_t other = input.byte();
    if (other >= 240) lanes = other - 240U;
    return testing::make_packet(header, testing::Lanes(lanes, static_cast<std::int32_t>(value)));
}

}  // namespace atp::fuzz
