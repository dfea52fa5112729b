// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/hash.h"

namespace atp::protocol {

// A worker's addend to the audit lane, modulo 2^32. The server knows the expected sum of every set of workers.
[[nodiscard]] constexpr std::uint32_t audit_word(std::uint32_t job, std::uint64_t token, std::uint16_t channel,
                                                 std::uint32_t seq, std::uint32_t worker) {
    const auto low = static_cast<std::uint32_t>(token);
    const auto high = static_cast<std::uint32_t>(token >> 32U);
    return mix(mix(mix(mix(job ^ low) + high) + seq) + (static_cast<std::uint32_t>(channel) << 16U) + worker);
}

}  // namespace atp::protocol
