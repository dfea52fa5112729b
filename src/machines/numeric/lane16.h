// SPDX-License-Identifier: Apache-2.0
// Operations on one int16 lane, for the loops of lanes16.cc.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "numeric/lane.h"

namespace atp::numeric::short_lane {

inline constexpr std::int32_t highest = std::numeric_limits<std::int16_t>::max();
inline constexpr std::int32_t lowest = std::numeric_limits<std::int16_t>::min();
// A product below this magnitude rounds to at most `highest` in magnitude. No lane is `lowest`, because some targets
// reserve both extremes for sums that exceeded 16 bits.
inline constexpr float refused_magnitude = 32767.5F;

inline std::int16_t load(const std::byte* at) {
    std::uint16_t bits;
    std::memcpy(&bits, at, sizeof bits);
    return static_cast<std::int16_t>(__builtin_bswap16(bits));
}

inline void store(std::int16_t lane, std::byte* at) {
    const std::uint16_t bits = __builtin_bswap16(static_cast<std::uint16_t>(lane));
    std::memcpy(at, &bits, sizeof bits);
}

// 1 if the product fits.
inline std::int32_t quantise(float value, float scale, std::byte* at) {
    const float product = value * scale;
    const bool fits = std::fabs(product) < refused_magnitude;
    store(static_cast<std::int16_t>(std::nearbyint(fits ? product : 0.0F)), at);
    return fits ? 1 : 0;
}

// 1 if the sum exceeded 16 bits; it then saturates.
inline std::int32_t add(const std::byte* addend, std::byte* at) {
    const std::int32_t sum = std::int32_t{load(addend)} + load(at);
    const std::int32_t saturated = std::clamp(sum, lowest, highest);
    store(static_cast<std::int16_t>(saturated), at);
    return sum != saturated ? 1 : 0;
}

}  // namespace atp::numeric::short_lane
