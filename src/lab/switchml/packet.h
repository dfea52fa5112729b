// SPDX-License-Identifier: Apache-2.0
// Format of a SwitchML packet: the bytes after the UDP header, in both directions.
//
// The paper shows no layout, but gives sizes: 180 bytes on the wire with 32 lanes (§3.4), 1,516 with 366 (§5.5). Both
// leave 52 bytes of headers. Ethernet (14), IPv4 (20) and UDP (8) take 42 of them. The other ten are:
//
//    0        1        2        3        4        5        6        7        8        9
//   +--------+--------+--------+--------+--------+--------+--------+--------+--------+--------+
//   |format  | flags  | job    | worker |      slot       |              offset               |
//   +--------+--------+--------+--------+--------+--------+--------+--------+--------+--------+
//   | lanes, as many as the datagram holds: big-endian int32, or float16 with the flag HALVES ...
//
// docs/spec/switchml.md is normative; tests/conformance/switchml.json holds golden vectors. decode() may get
// any bytes. If it accepts a packet, every field is within its range. Threads: any; the functions have no state. The
// packet path allocates no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "wire/packet.h"

namespace atp::switchml {

// Differs from the first byte of ATP packets and control messages. Low nibble: the version.
inline constexpr std::uint8_t format_byte = 0xB1;
inline constexpr std::size_t header_bytes = 10;
inline constexpr std::size_t int32_lane_bytes = 4;
inline constexpr std::size_t half_lane_bytes = 2;
inline constexpr std::size_t max_lane_bytes = 65'496;  // an IPv4 datagram holds 65,507 bytes
inline constexpr unsigned max_workers = 64;            // bits of the switch's bitmap: the ports of one switch

inline constexpr std::size_t paper_lanes = 32;
inline constexpr std::size_t paper_mtu_lanes = 366;
inline constexpr std::size_t lower_header_bytes = 14 + 20 + 8;  // Ethernet without FCS, IPv4, UDP
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
    flag_version = 1 << 0,   // copy of the slot, 0 or 1; alternates with each use of the slot
    flag_result = 1 << 1,    // set in packets to workers: the lanes are the sum of all workers
    flag_halves = 1 << 2,    // the lanes are float16
    flag_overflow = 1 << 3,  // a value did not fit its lane: the sum is invalid
};
inline constexpr std::uint8_t all_flags = 0x0F;

// Header fields in host byte order.
struct Header {
    std::uint8_t flags = 0;
    std::uint8_t job = 0;      // number of the job at its switch
    std::uint8_t worker = 0;   // to the switch: the sender; from the switch: the worker whose packet became the result
    std::uint16_t slot = 0;    // within the job's own slots
    std::uint32_t offset = 0;  // fragment of the job's stream, counted in packets; wraps around

    [[nodiscard]] unsigned version() const { return flags & flag_version; }
    [[nodiscard]] bool result() const { return (flags & flag_result) != 0; }
    [[nodiscard]] bool halves() const { return (flags & flag_halves) != 0; }
    [[nodiscard]] bool overflowed() const { return (flags & flag_overflow) != 0; }
    [[nodiscard]] std::size_t lane_bytes() const { return halves() ? half_lane_bytes : int32_lane_bytes; }

    bool operator==(const Header&) const = default;
};

// In the order in which decode() checks.
enum class DecodeError : std::uint8_t {
    none,
    truncated,  // shorter than a header
    format,     // another format or version
    oversized,  // more lanes than a datagram holds
    flags,      // an unknown flag is set
    ragged,     // no lanes, or a fraction of a lane
    worker,     // worker number of max_workers or more
};
inline constexpr std::size_t decode_error_count = 7;
static_assert(static_cast<std::size_t>(DecodeError::worker) + 1 == decode_error_count);

[[nodiscard]] std::string_view to_string(DecodeError error);

// Whether the first byte is that of a SwitchML packet. ATP packets and control messages start with other bytes.
[[nodiscard]] inline bool has_format(std::span<const std::byte> bytes) {
    return !bytes.empty() && wire::load_u8(bytes.data()) == format_byte;
}

// A decoded packet: the header by value, the lanes in the buffer that received them.
struct Packet {
    Header header;
    std::span<std::byte> lanes;

    [[nodiscard]] std::size_t lane_count() const { return lanes.size() / header.lane_bytes(); }
};

// On success `packet.lanes` points into `bytes`. On an error the contents of `packet` are unspecified.
[[nodiscard]] DecodeError decode(std::span<std::byte> bytes, Packet& packet);

// Writes the ten bytes of the header. `bytes` must hold at least header_bytes.
void encode_header(const Header& header, std::span<std::byte> bytes);

// One line for logs: "UPDATE job=3 w=2 slot=5 ver=1 off=133 int32x32", or RESULT, and the flags that are set.
[[nodiscard]] std::string to_string(const Header& header, std::size_t lanes);

}  // namespace atp::switchml
