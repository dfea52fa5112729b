// SPDX-License-Identifier: Apache-2.0
#include "control/address_range.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "control/branch.h"

namespace atp::control {
namespace {

constexpr unsigned bits_of_byte = 8;

unsigned address_bits(const wire::Endpoint& endpoint) { return endpoint.family == 4 ? 32 : 128; }

// With the bits after the prefix as 0, and without a port.
wire::Endpoint network_of(wire::Endpoint endpoint, unsigned prefix_bits) {
    endpoint.port = 0;
    for (unsigned i = 0; i < endpoint.host.size(); ++i) {
        const unsigned before = i * bits_of_byte;
        const unsigned kept = prefix_bits <= before ? 0 : std::min(prefix_bits - before, bits_of_byte);
        endpoint.host[i] &= std::byte{0xFF} << (bits_of_byte - kept);
    }
    return endpoint;
}

std::optional<AddressRange> parse_range(std::string_view text) {
    const std::size_t slash = text.find('/');
    const std::string_view host = text.substr(0, slash);
    const bool is_v6 = host.find(':') != std::string_view::npos;
    const auto address = wire::Address::parse(is_v6 ? fmt::format("[{}]:0", host) : fmt::format("{}:0", host));
    if (!address) return std::nullopt;
    const wire::Endpoint first = endpoint_of(*address);
    unsigned bits = address_bits(first);
    if (slash != std::string_view::npos) {
        const std::string_view digits = text.substr(slash + 1);
        const char* const end = digits.data() + digits.size();
        const auto [last, error] = std::from_chars(digits.data(), end, bits);
        if (error != std::errc() || last != end || bits > address_bits(first)) return std::nullopt;
    }
    if (network_of(first, bits) != first) return std::nullopt;
    return AddressRange{.first = first, .prefix_bits = static_cast<std::uint8_t>(bits)};
}

std::string to_string(const AddressRange& range) {
    const std::string address = wire::to_string(address_of(range.first));
    const std::size_t colon = address.rfind(':');
    const bool bracket = address.front() == '[';
    const std::string host = bracket ? address.substr(1, colon - 2) : address.substr(0, colon);
    return fmt::format("{}/{}", host, range.prefix_bits);
}

}  // namespace

bool AddressRange::contains(const wire::Address& address) const {
    const wire::Endpoint endpoint = endpoint_of(address);
    return endpoint.family == first.family && network_of(endpoint, prefix_bits) == first;
}

bool contain(std::span<const AddressRange> ranges, const wire::Address& address) {
    return std::ranges::any_of(ranges, [&](const AddressRange& range) { return range.contains(address); });
}

std::optional<std::vector<AddressRange>> parse_ranges(std::string_view text) {
    std::vector<AddressRange> ranges;
    while (true) {
        const std::size_t comma = text.find(',');
        const auto range = parse_range(text.substr(0, comma));
        if (!range) return std::nullopt;
        ranges.push_back(*range);
        if (comma == std::string_view::npos) return ranges;
        text.remove_prefix(comma + 1);
    }
}

std::string to_string(std::span<const AddressRange> ranges) {
    std::vector<std::string> texts;
    for (const AddressRange& range : ranges) texts.push_back(to_string(range));
    return fmt::format("{}", fmt::join(texts, ","));
}

}  // namespace atp::control
