// SPDX-License-Identifier: Apache-2.0
// Serial-number arithmetic (RFC 1982) for sequence numbers, which wrap within the life of a channel.
#pragma once

#include <cstdint>

namespace atp::protocol {

// How far `to` is ahead of `from`; negative if it is behind. Valid if they are less than 2^31 apart.
[[nodiscard]] constexpr std::int32_t distance(std::uint32_t from, std::uint32_t to) {
    return static_cast<std::int32_t>(to - from);
}

[[nodiscard]] constexpr bool before(std::uint32_t a, std::uint32_t b) { return distance(a, b) > 0; }

}  // namespace atp::protocol
