// SPDX-License-Identifier: Apache-2.0
// Encoding and decoding of packets. Decode accepts any bytes: a packet that it accepts has every field within its range,
// so nothing behind it checks again; one that it refuses is counted by reason and dropped by the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "wire/format.h"

namespace atp::wire {

enum class DecodeError : std::uint8_t {
    none,
    truncated,      // shorter than a header
    oversized,      // more than ATP_MAX_LANES lanes
    ragged,         // the lanes are no whole number of 4 bytes
    version,        // not ATP_VERSION
    type,           // unknown type
    flags,          // an unknown flag
    dtype,          // unknown dtype, or one that does not fit the type or the presence of lanes
    hop,            // more hops than there are levels
    window,         // window_log2 out of range
    token,          // token 0 belongs to nobody
    set,            // bitmap outside its mask, or a gradient of nobody
};
inline constexpr std::size_t decode_error_count = 12;

std::string_view to_string(DecodeError error);

// A packet that was decoded: the header by value, the lanes still where they were received.
struct Packet {
    atp_header header{};
    std::span<std::byte> lanes;  // big-endian, ATP_LANE_BYTES each

    [[nodiscard]] std::size_t lane_count() const { return lanes.size() / ATP_LANE_BYTES; }
};

[[nodiscard]] DecodeError decode(std::span<std::byte> bytes, Packet& packet);

// Writes the 48 header bytes in front of the lanes. `bytes` must hold at least ATP_HEADER_BYTES.
void encode_header(const atp_header& header, std::span<std::byte> bytes);

// One greppable line: "GRADIENT job=1 ch=0 seq=17 w=2 hop=0 idx=5 int32x62 set=0x4/0xf,0x1/0x1 resend ecn".
std::string to_string(const atp_header& header, std::size_t lanes);
std::string flags_to_string(std::uint16_t flags);
std::string_view type_to_string(std::uint8_t type);

// Big-endian access, for lanes and for those who patch single fields.
[[nodiscard]] inline std::uint32_t load_u32(const std::byte* at) {
    std::uint32_t value;
    __builtin_memcpy(&value, at, sizeof value);
    return __builtin_bswap32(value);
}
inline void store_u32(std::byte* at, std::uint32_t value) {
    value = __builtin_bswap32(value);
    __builtin_memcpy(at, &value, sizeof value);
}

}  // namespace atp::wire
