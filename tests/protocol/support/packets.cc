// SPDX-License-Identifier: Apache-2.0
#include "support/packets.h"

#include <bit>

namespace atp::testing {

Bytes make_packet(const atp_header& header, const Lanes& lanes) {
    Bytes bytes(ATP_HEADER_BYTES + lanes.size() * ATP_LANE_BYTES);
    wire::encode_header(header, bytes);
    std::byte* at = bytes.data() + ATP_HEADER_BYTES;
    for (const std::int32_t lane : lanes) {
        wire::store_u32(at, static_cast<std::uint32_t>(lane));
        at += ATP_LANE_BYTES;
    }
    return bytes;
}

Bytes make_float_packet(const atp_header& header, const std::vector<float>& lanes) {
    Lanes bits;
    for (const float lane : lanes) bits.push_back(std::bit_cast<std::int32_t>(lane));
    return make_packet(header, bits);
}

atp_header header_in(std::span<const std::byte> bytes) { return wire::detail::load_header(bytes.data()); }

Lanes lanes_in(std::span<const std::byte> bytes) {
    Lanes lanes;
    for (std::size_t at = ATP_HEADER_BYTES; at + ATP_LANE_BYTES <= bytes.size(); at += ATP_LANE_BYTES) {
        lanes.push_back(static_cast<std::int32_t>(wire::load_u32(bytes.data() + at)));
    }
    return lanes;
}

std::vector<float> floats_in(std::span<const std::byte> bytes) {
    std::vector<float> floats;
    for (const std::int32_t lane : lanes_in(bytes)) floats.push_back(std::bit_cast<float>(lane));
    return floats;
}

atp_header gradient_of(const protocol::ChannelConfig& channel, const protocol::Membership& membership,
                       std::uint16_t rank, std::uint32_t seq) {
    const protocol::Place& place = membership.place(rank);
    atp_header header{};
    header.version = ATP_VERSION;
    header.type = ATP_TYPE_GRADIENT;
    header.flags = channel.audit ? ATP_FLAG_AUDIT : 0;
    header.hop = place.hop;
    header.dtype = ATP_DTYPE_INT32;
    header.window_log2 = channel.window_log2;
    header.job = channel.job;
    header.token = channel.token;
    header.channel = channel.channel;
    header.worker = rank;
    header.seq = seq;
    header.index = channel.index(seq, 0);
    header.bitmap0 = 1U << place.member;
    header.mask0 = place.mask0;
    header.bitmap1 = 1U << place.unit;
    header.mask1 = place.mask1;
    return header;
}

atp_header gradient_of_members(const protocol::ChannelConfig& channel, const protocol::Membership& membership,
                               unsigned unit, std::uint32_t members, std::uint32_t seq) {
    atp_header header = gradient_of(channel, membership, membership.rank_of(unit, 0), seq);
    header.hop = 1;
    header.bitmap0 = members;
    return header;
}

atp_header gradient_of_units(const protocol::ChannelConfig& channel, const protocol::Membership& membership,
                             std::uint32_t units, std::uint32_t seq) {
    atp_header header = gradient_of(channel, membership, 0, seq);
    header.hop = 2;
    header.flags |= ATP_FLAG_WHOLE;
    header.bitmap1 = units;
    return header;
}

}  // namespace atp::testing
