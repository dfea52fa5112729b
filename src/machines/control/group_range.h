// SPDX-License-Identifier: Apache-2.0
// Results by IP multicast: the group of each channel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "wire/control.h"

namespace atp::control {

// A job takes consecutive groups of a range, from one that rank 0 draws. Anybody sees groups, so nothing that is
// secret, such as the token, may follow from them. All channels of all jobs use one port, on which no switch receives.
struct Multicast {
    static constexpr std::uint16_t port = 4792;

    bool requested = false;              // results go by multicast
    std::uint32_t network = 0xEFC00000;  // in host order. 239.192.0.0: organisation-local scope (RFC 2365)
    std::uint8_t prefix_bits = 16;       // 4 to 32

    bool operator==(const Multicast&) const = default;
};

// Accepts "off", "on", a range ("239.192.0.0/16") or one group ("239.192.1.2"); nullopt for any other text.
[[nodiscard]] std::optional<Multicast> parse_multicast(std::string_view text);
// In the form that parse_multicast() accepts.
[[nodiscard]] std::string to_string(const Multicast& multicast);

// The group of this channel; no family if multicast is off. `first`: a random number, of which the range takes the bits
// that it has room for.
[[nodiscard]] wire::Endpoint group_of(const Multicast& multicast, std::uint32_t first, std::uint16_t channel);

}  // namespace atp::control
