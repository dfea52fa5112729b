// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/hash.h"
#include "base/siphash.h"

namespace atp::protocol {

// Where the indices of a channel begin. The token is the key, so nobody else can compute them, or the token from them:
// results by group carry indices, but no token (docs/spec/packet.md#aggregators-and-slots).
[[nodiscard]] constexpr std::uint32_t index_seed(std::uint32_t job, std::uint64_t token, std::uint16_t channel) {
    return static_cast<std::uint32_t>(number_of_secret({token, std::uint64_t{job} << 16U | channel}));
}

// Aggregator index of a base slot. All workers of a job and its server compute the same index.
[[nodiscard]] constexpr std::uint32_t aggregator_index(std::uint32_t seed, std::uint32_t slot, std::uint32_t attempt,
                                                       std::uint32_t aggregators) {
    const std::uint32_t hash = mix(mix(seed + slot) + attempt * 0x85ebca6bU);
    return static_cast<std::uint32_t>((static_cast<std::uint64_t>(hash) * aggregators) >> 32U);
}

}  // namespace atp::protocol
