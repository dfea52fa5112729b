// SPDX-License-Identifier: Apache-2.0
// Results by IP multicast: from which groups the channels of a job take theirs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "wire/control.h"

namespace atp::control {

// Every channel hashes to one group of a range, all channels of all jobs on one port, which no switch listens at.
struct Multicast {
    static constexpr std::uint16_t port = 4792;

    bool wanted = false;
    std::uint32_t network = 0xEFC00000;  // 239.192.0.0, of the addresses that an organisation gives out itself
    std::uint8_t prefix_bits = 16;

    bool operator==(const Multicast&) const = default;
};

// "off", "on", "239.192.0.0/16", or one group: "239.192.1.2".
[[nodiscard]] std::optional<Multicast> parse_multicast(std::string_view text);
// As it is parsed.
[[nodiscard]] std::string to_string(const Multicast& multicast);

// Of no family where none is wanted.
[[nodiscard]] wire::Endpoint group_of(const Multicast& multicast, std::uint32_t job, std::uint32_t token,
                                      std::uint16_t channel);

}  // namespace atp::control
