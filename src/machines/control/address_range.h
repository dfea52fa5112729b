// SPDX-License-Identifier: Apache-2.0
// The addresses of a network.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/address.h"
#include "wire/control.h"

namespace atp::control {

struct AddressRange {
    wire::Endpoint first{};        // host bits are 0, the port does not matter
    std::uint8_t prefix_bits = 0;  // up to 32, or 128 with IPv6

    bool operator==(const AddressRange&) const = default;

    [[nodiscard]] bool contains(const wire::Address& address) const;
};

// Whether one of the ranges has this address.
[[nodiscard]] bool contain(std::span<const AddressRange> ranges, const wire::Address& address);

// Who may use a switch, and what they may name.
struct HostLists {
    std::vector<AddressRange> clients;  // that may join and ask; empty: any host
    std::vector<AddressRange> servers;  // that jobs may name as server or root; empty: any host
    std::vector<AddressRange> groups;   // to which jobs may have results sent by multicast
};

inline constexpr std::string_view address_ranges_forms = "networks separated by commas, such as 10.0.0.0/8,fd00::/8";

// Accepts networks and single addresses, separated by commas. nullopt for any other text, also for a network whose host
// bits are not 0.
[[nodiscard]] std::optional<std::vector<AddressRange>> parse_ranges(std::string_view text);
// In the form that parse_ranges() accepts.
[[nodiscard]] std::string to_string(std::span<const AddressRange> ranges);

}  // namespace atp::control
