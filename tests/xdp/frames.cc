// SPDX-License-Identifier: Apache-2.0
#include "frames.h"

#include <array>
#include <stdexcept>

#include "wire/packet.h"

namespace atp::test {
namespace {

using wire::load_u16;
using wire::store_u16;

constexpr std::size_t ethernet_addresses_bytes = 12;
constexpr std::size_t udp_header_bytes = 8;
constexpr std::uint16_t type_vlan = 0x8100;
constexpr std::uint16_t type_ipv4 = 0x0800;
constexpr std::uint16_t type_ipv6 = 0x86DD;

void append_u16(Bytes& bytes, std::size_t value) {
    bytes.resize(bytes.size() + 2);
    store_u16(&bytes[bytes.size() - 2], static_cast<std::uint16_t>(value));
}

void append(Bytes& bytes, std::size_t count, unsigned value) { bytes.insert(bytes.end(), count, std::byte(value)); }

// The ones' complement sum of 16-bit words, as for the Internet checksum (RFC 1071).
std::uint16_t sum_of(std::span<const std::byte> bytes, std::uint64_t sum = 0) {
    for (std::size_t at = 0; at < bytes.size(); at += 2) {
        sum += at + 1 < bytes.size() ? load_u16(&bytes[at]) : unsigned{wire::load_u8(&bytes[at])} << 8U;
    }
    while (sum >> 16U != 0) sum = (sum & 0xFFFF) + (sum >> 16U);
    return static_cast<std::uint16_t>(sum);
}

std::uint16_t complement(std::uint16_t sum) { return static_cast<std::uint16_t>(~sum); }

std::uint16_t pseudo_sum(std::span<const std::byte> addresses, std::size_t udp_bytes) {
    return sum_of(addresses, 17 + udp_bytes);
}

void append_ethernet(Bytes& frame, const Wrapping& wrapping) {
    append(frame, 1, wrapping.to_many ? 0x33 : 0x02);
    append(frame, 5, 0x11);
    append(frame, 6, 0x22);
    for (int tag = 0; tag < wrapping.vlan_tags; ++tag) {
        append_u16(frame, type_vlan);
        append_u16(frame, 100U + static_cast<unsigned>(tag));
    }
    append_u16(frame, wrapping.ip == 4 ? type_ipv4 : type_ipv6);
}

// Appends the IPv4 header to `frame`. Returns the source and the destination address.
Bytes append_ipv4(Bytes& frame, const Wrapping& wrapping, std::size_t udp_bytes) {
    const auto option_words = static_cast<std::size_t>(wrapping.ipv4_option_words);
    const std::size_t start = frame.size();
    const std::size_t header_bytes = 20 + 4 * option_words;
    append(frame, 1, 0x40U + static_cast<unsigned>(header_bytes / 4));
    append(frame, 1, wrapping.ecn);
    append_u16(frame, header_bytes + udp_bytes);
    append_u16(frame, 7);
    append_u16(frame, wrapping.fragment);
    append(frame, 1, wrapping.hop_limit);
    append(frame, 1, wrapping.protocol);
    append_u16(frame, 0);
    append(frame, 4, 10);
    append(frame, 4, 20);
    append(frame, 4 * option_words, 1);
    store_u16(&frame[start + 10], complement(sum_of(std::span(frame).subspan(start))));
    return {&frame[start + 12], &frame[start + 12] + 8};
}

Bytes append_ipv6(Bytes& frame, const Wrapping& wrapping, std::size_t udp_bytes) {
    const std::size_t start = frame.size();
    append(frame, 1, 0x60);
    append(frame, 1, wrapping.ecn << 4U);
    append_u16(frame, 0);
    append_u16(frame, udp_bytes);
    append(frame, 1, wrapping.protocol);
    append(frame, 1, wrapping.hop_limit);
    append(frame, 16, 0xFD);
    append(frame, 16, 0xFE);
    return {&frame[start + 8], &frame[start + 8] + 32};
}

std::uint16_t checksum_of(const Wrapping& wrapping, std::span<const std::byte> addresses,
                          std::span<const std::byte> datagram) {
    const std::uint16_t pseudo = pseudo_sum(addresses, datagram.size());
    const std::uint16_t full = complement(sum_of(datagram, pseudo));
    switch (wrapping.checksum) {
        case Checksum::none: return 0;
        case Checksum::partial: return pseudo;
        case Checksum::wrong: return static_cast<std::uint16_t>(full ^ 0x0101U);
        default: return full == 0 ? 0xFFFF : full;
    }
}

Bytes copy_of(std::span<const std::byte> bytes, std::size_t at, std::size_t count) {
    if (at + count > bytes.size()) throw std::runtime_error("the frame is truncated");
    return {bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.begin() + static_cast<std::ptrdiff_t>(at + count)};
}

Checksum read_checksum(std::span<const std::byte> addresses, std::span<const std::byte> datagram) {
    const std::uint16_t check = load_u16(&datagram[6]);
    const std::uint16_t pseudo = pseudo_sum(addresses, datagram.size());
    if (check == 0) return Checksum::none;
    if (sum_of(datagram, pseudo) == 0xFFFF) return Checksum::full;
    return check == pseudo ? Checksum::partial : Checksum::wrong;
}

}  // namespace

Bytes wrap(std::span<const std::byte> payload, const Wrapping& wrapping) {
    const std::size_t udp_bytes = udp_header_bytes + payload.size();
    Bytes frame;
    append_ethernet(frame, wrapping);
    const Bytes addresses =
        wrapping.ip == 4 ? append_ipv4(frame, wrapping, udp_bytes) : append_ipv6(frame, wrapping, udp_bytes);
    const std::size_t start = frame.size();
    append_u16(frame, wrapping.source);
    append_u16(frame, wrapping.destination);
    append_u16(frame, udp_bytes);
    append_u16(frame, 0);
    frame.insert(frame.end(), payload.begin(), payload.end());
    store_u16(&frame[start + 6], checksum_of(wrapping, addresses, std::span(frame).subspan(start)));
    append(frame, wrapping.padding, 0xEE);
    return frame;
}

Unwrapped unwrap(std::span<const std::byte> frame) {
    std::size_t at = ethernet_addresses_bytes;
    while (load_u16(&frame[at]) == type_vlan) at += 4;
    const bool is_ipv4 = load_u16(&frame[at]) == type_ipv4;
    at += 2;
    Unwrapped found;
    found.ethernet = copy_of(frame, 0, at);
    const std::size_t header_bytes = is_ipv4 ? (wire::load_u8(&frame[at]) & 0xFU) * 4U : 40;
    const std::span<const std::byte> network = frame.subspan(at, header_bytes);
    const std::size_t udp_bytes = is_ipv4 ? load_u16(&network[2]) - header_bytes : load_u16(&network[4]);
    const std::size_t address_bytes = is_ipv4 ? 4 : 16;
    const std::size_t addresses_at = is_ipv4 ? 12 : 8;
    found.hop_limit = wire::load_u8(&network[is_ipv4 ? 8 : 7]);
    found.ecn = wire::load_u8(&network[1]) >> (is_ipv4 ? 0U : 4U) & 3U;
    found.network_checksum_holds = !is_ipv4 || sum_of(network) == 0xFFFF;
    found.source = copy_of(network, addresses_at, address_bytes);
    found.destination = copy_of(network, addresses_at + address_bytes, address_bytes);

    const Bytes datagram = copy_of(frame, at + header_bytes, udp_bytes);
    if (load_u16(&datagram[4]) != udp_bytes) throw std::runtime_error("IP and UDP disagree about the length");
    found.source_port = load_u16(datagram.data());
    found.destination_port = load_u16(&datagram[2]);
    found.checksum = read_checksum(copy_of(network, addresses_at, 2 * address_bytes), datagram);
    found.payload.assign(datagram.begin() + udp_header_bytes, datagram.end());
    found.padding = frame.size() - at - header_bytes - udp_bytes;
    return found;
}

}  // namespace atp::test
