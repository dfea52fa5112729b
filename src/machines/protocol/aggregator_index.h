// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/hash.h"

namespace atp::protocol {

// Aggregator index of a slot. All workers of a job and its server compute the same index. The job is part of the
// hash, so jobs use different sequences of indices.
[[nodiscard]] constexpr std::uint32_t aggregator_index(std::uint32_t job, std::uint16_t channel, std::uint32_t slot,
                                                       std::uint32_t attempt, std::uint32_t aggregators) {
    const std::uint32_t hash = mix(mix(mix(job ^ 0x9e3779b9U) + channel) + slot) + attempt * 0x85ebca6bU;
    return static_cast<std::uint32_t>((static_cast<std::uint64_t>(mix(hash)) * aggregators) >> 32U);
}

}  // namespace atp::protocol
