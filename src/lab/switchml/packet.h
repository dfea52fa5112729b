// SPDX-License-Identifier: Apache-2.0
// The SwitchML packet as bytes: what stands after the UDP header, in both directions alike.
//
// The paper draws no packet, but counts it: 180 bytes on the wire with 32 lanes (§3.4), 1,516 with 366 (§5.5). Both
// leave 52 bytes of headers, and Ethernet (14), IPv4 (20) and UDP (8) take 42 of them. These are the other ten:
//
//    0        1        2        3        4        5        6        7        8        9
//   +--------+--------+--------+--------+--------+--------+--------+--------+--------+--------+
//   |format  | flags  | job    | worker |      slot       |              offset               |
//   +--------+--------+--------+--------+--------+--------+--------+--------+--------+--------+
//   | lanes, as many as the datagram holds: big-endian int32, or float16 with the flag HALVES ...
//
// docs/protocol.md, "SwitchML", is normative; tests/conformance/switchml.json holds golden vectors. Decode accepts any
// bytes, and a packet that it accepts has every field within its range. Functions of their arguments: no state, no
// allocation on the packet path, safe from every thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "wire/packet.h"

namespace atp::switchml {

// Apart from ATP's version byte, with which all other packets and messages begin. Low nibble: the version.
inline constexpr std::uint8_t format_byte = 0xB1;
inline constexpr std::size_t header_bytes = 10;
inline constexpr std::size_t int32_lane_bytes = 4;
inline constexpr std::size_t half_lane_bytes = 2;
inline constexpr std::size_t max_lane_bytes = 65'496;  // a datagram over IPv4 holds 65,507 bytes
inline constexpr unsigned max_workers = 64;            // bits of the switch's bitmap: the ports of one switch

inline constexpr std::size_t paper_lanes = 32;
inline constexpr std::size_t paper_mtu_lanes = 366;
inline constexpr std::size_t lower_header_bytes = 14 + 20 + 8;  // Ethernet without its checksum, IPv4, UDP
static_assert(lower_header_bytes + header_bytes + paper_lanes * int32_lane_bytes == 180);
static_assert(lower_header_bytes + header_bytes + paper_mtu_lanes * int32_lane_bytes == 1516);

enum Offset : std::size_t {
    offset_format = 0,
    offset_flags = 1,
    offset_job = 2,
    offset_worker = 3,
    offset_slot = 4,
    offset_offset = 6,
};

enum Flag : std::uint8_t {
    flag_version = 1 << 0,   // which of the slot's two copies; alternates each time the slot is used again
    flag_result = 1 << 1,    // down: the sum of all workers
    flag_halves = 1 << 2,    // the lanes are float16
    flag_overflow = 1 << 3,  // some number did not fit its lane: the sum is not the sum
};
inline constexpr std::uint8_t all_flags = 0x0F;

// In host byte order.
struct Header {
    std::uint8_t flags = 0;
    std::uint8_t job = 0;      // as the switch knows it
    std::uint8_t worker = 0;   // up: who sent it; down: whose packet it was that became the result
    std::uint16_t slot = 0;    // of the job's own slots
    std::uint32_t offset = 0;  // which fragment of the job's stream, counted in packets; wraps

    [[nodiscard]] unsigned version() const { return flags & flag_version; }
    [[nodiscard]] bool result() const { return (flags & flag_result) != 0; }
    [[nodiscard]] bool halves() const { return (flags & flag_halves) != 0; }
    [[nodiscard]] bool overflowed() const { return (flags & flag_overflow) != 0; }
    [[nodiscard]] std::size_t lane_bytes() const { return halves() ? half_lane_bytes : int32_lane_bytes; }

    bool operator==(const Header&) const = default;
};

// In the order in which decode() looks.
enum class DecodeError : std::uint8_t {
    none,
    truncated,  // shorter than a header
    format,     // not this format, or another version of it
    oversized,  // more lanes than a datagram holds
    flags,      // an unknown flag
    ragged,     // the lanes are no whole number of lanes, or none
    worker,     // more workers than a switch can tell apart
};
inline constexpr std::size_t decode_error_count = 7;
static_assert(static_cast<std::size_t>(DecodeError::worker) + 1 == decode_error_count);

[[nodiscard]] std::string_view to_string(DecodeError error);

// Whether it wants to be such a packet: ATP's, and all messages, begin otherwise.
[[nodiscard]] inline bool has_format(std::span<const std::byte> bytes) {
    return !bytes.empty() && wire::load_u8(bytes.data()) == format_byte;
}

// A packet that was decoded: the header by value, the lanes still where they were received.
struct Packet {
    Header header;
    std::span<std::byte> lanes;

    [[nodiscard]] std::size_t lane_count() const { return lanes.size() / header.lane_bytes(); }
};

// On success `packet.lanes` points into `bytes`. On an error `packet` holds nothing that may be used.
[[nodiscard]] DecodeError decode(std::span<std::byte> bytes, Packet& packet);

// Writes the ten bytes in front of the lanes. `bytes` must hold at least header_bytes.
void encode_header(const Header& header, std::span<std::byte> bytes);

// One greppable line: "UPDATE job=3 w=2 slot=5 ver=1 off=133 int32x32", or RESULT, and the flags that are set.
[[nodiscard]] std::string to_string(const Header& header, std::size_t lanes);

}  // namespace atp::switchml
