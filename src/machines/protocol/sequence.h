// SPDX-License-Identifier: Apache-2.0
// Serial-number arithmetic (RFC 1982) for sequence numbers, which wrap within the life of a channel.
#pragma once

#include <cstdint>

#include "base/hash.h"

namespace atp::protocol {

// How far `to` is ahead of `from`; negative if it is behind. Valid if they are less than 2^31 apart.
[[nodiscard]] constexpr std::int32_t distance(std::uint32_t from, std::uint32_t to) {
    return static_cast<std::int32_t>(to - from);
}

[[nodiscard]] constexpr bool before(std::uint32_t a, std::uint32_t b) { return distance(a, b) > 0; }

// Aggregator index of a slot. All workers of a job and its server compute the same index. The job is part of the
// hash, so jobs use different sequences of indices.
[[nodiscard]] constexpr std::uint32_t aggregator_index(std::uint32_t job, std::uint16_t channel, std::uint32_t slot,
                                                       std::uint32_t attempt, std::uint32_t aggregators) {
    const std::uint32_t hash = mix(mix(mix(job ^ 0x9e3779b9U) + channel) + slot) + attempt * 0x85ebca6bU;
    return static_cast<std::uint32_t>((static_cast<std::uint64_t>(mix(hash)) * aggregators) >> 32U);
}

// A worker's addend to the audit lane, modulo 2^32. The server knows the expected sum of every set of workers.
[[nodiscard]] constexpr std::uint32_t audit_word(std::uint32_t job, std::uint64_t token, std::uint16_t channel,
                                                 std::uint32_t seq, std::uint32_t worker) {
    const auto low = static_cast<std::uint32_t>(token);
    const auto high = static_cast<std::uint32_t>(token >> 32U);
    return mix(mix(mix(mix(job ^ low) + high) + seq) + (static_cast<std::uint32_t>(channel) << 16U) + worker);
}

}  // namespace atp::protocol
