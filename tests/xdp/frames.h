// SPDX-License-Identifier: Apache-2.0
// Writes and reads Ethernet frames around packets. This code is independent of the kernel program, so tests can compare
// the two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace atp::test {

using Bytes = std::vector<std::byte>;

enum class Checksum : std::uint8_t { full, none, partial, wrong };

// Fields of the headers around a payload.
struct Wrapping {
    int ip = 4;
    int vlan_tags = 0;
    int ipv4_option_words = 0;
    unsigned ecn = 2;  // the ECN bits: ECT(0)
    Checksum checksum = Checksum::full;
    std::uint16_t source = 50'000;
    std::uint16_t destination = 4790;
    bool to_many = false;        // the destination is an Ethernet multicast address
    std::size_t padding = 0;     // bytes after the datagram
    std::uint16_t fragment = 0;  // flags and fragment offset of IPv4
    std::uint8_t protocol = 17;  // UDP
    std::uint8_t hop_limit = 3;
};

[[nodiscard]] Bytes wrap(std::span<const std::byte> payload, const Wrapping& wrapping);

// Fields that unwrap() reads from a frame.
struct Unwrapped {
    Bytes payload;
    Bytes ethernet;  // both addresses and the VLAN tags
    Bytes source, destination;
    std::uint16_t source_port = 0, destination_port = 0;
    std::uint8_t hop_limit = 0;
    unsigned ecn = 0;
    bool network_checksum_holds = false;  // true for IPv6, which has no such checksum
    Checksum checksum = Checksum::wrong;
    std::size_t padding = 0;
};

// Reads a frame that wrap() made and the kernel program may have changed. Throws if its lengths contradict each other.
[[nodiscard]] Unwrapped unwrap(std::span<const std::byte> frame);

}  // namespace atp::test
