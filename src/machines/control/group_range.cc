// SPDX-License-Identifier: Apache-2.0
#include "control/group_range.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <charconv>

#include "wire/packet.h"

namespace atp::control {
namespace {

constexpr unsigned address_bits = 32;
// All IPv4 groups are in 224.0.0.0/4, so the range of groups must be, too.
constexpr unsigned class_bits = 4;
constexpr std::uint32_t class_of_groups = 0xE;

std::uint32_t host_bits(std::uint8_t prefix_bits) {
    return prefix_bits >= address_bits ? 0 : ~std::uint32_t{0} >> prefix_bits;
}

}  // namespace

std::optional<Multicast> parse_multicast(std::string_view text) {
    if (text == "off") return Multicast{};
    Multicast multicast{.requested = true};
    if (text == "on") return multicast;
    const std::size_t slash = text.find('/');
    multicast.prefix_bits = address_bits;
    if (slash != std::string_view::npos) {
        const char* const end = text.data() + text.size();
        const auto [last, error] = std::from_chars(text.data() + slash + 1, end, multicast.prefix_bits);
        if (error != std::errc() || last != end) return std::nullopt;
    }
    in_addr network{};
    if (inet_pton(AF_INET, std::string(text.substr(0, slash)).c_str(), &network) != 1) return std::nullopt;
    multicast.network = ntohl(network.s_addr);
    const bool fits = multicast.prefix_bits >= class_bits && multicast.prefix_bits <= address_bits &&
                      (multicast.network & host_bits(multicast.prefix_bits)) == 0;
    if (!fits || multicast.network >> (address_bits - class_bits) != class_of_groups) return std::nullopt;
    return multicast;
}

std::string to_string(const Multicast& multicast) {
    if (!multicast.requested) return "off";
    const std::uint32_t network = multicast.network;
    return fmt::format("{}.{}.{}.{}/{}", network >> 24U, network >> 16U & 0xFFU, network >> 8U & 0xFFU, network & 0xFFU,
                       multicast.prefix_bits);
}

wire::Endpoint group_of(const Multicast& multicast, std::uint32_t first, std::uint16_t channel) {
    if (!multicast.requested) return {};
    wire::Endpoint group{.family = 4, .port = Multicast::port, .host = {}};
    wire::store_u32(group.host.data(), multicast.network | ((first + channel) & host_bits(multicast.prefix_bits)));
    return group;
}

}  // namespace atp::control
