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

}  // namespace atp::testing
