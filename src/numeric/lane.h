// SPDX-License-Identifier: Apache-2.0
// One lane at a time: what the vector loops of lanes.cc do to each lane, for their tails and for processors without
// vectors that we know. Internal to this box.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

namespace atp::numeric::lane {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "lanes are swapped unconditionally");
static_assert(std::numeric_limits<float>::is_iec559 && std::numeric_limits<double>::is_iec559);

// The bits of 2^31 as a float32; as magnitudes, all larger bit patterns are larger numbers, infinity or NaN.
inline constexpr std::int32_t refused_magnitude_bits = 0x4F000000;
inline constexpr float refused_magnitude = 2147483648.0F;

inline std::uint32_t load(const std::byte* wire) {
    std::uint32_t bits;
    std::memcpy(&bits, wire, sizeof bits);
    return __builtin_bswap32(bits);
}

inline void store(std::uint32_t bits, std::byte* wire) {
    bits = __builtin_bswap32(bits);
    std::memcpy(wire, &bits, sizeof bits);
}

// True when the product has to be refused.
inline bool quantise(float value, float scale, std::byte* wire) {
    const float product = value * scale;
    const bool fits = std::fabs(product) < refused_magnitude;
    const float rounded = std::nearbyint(fits ? product : 0.0F);
    store(static_cast<std::uint32_t>(static_cast<std::int32_t>(rounded)), wire);
    return !fits;
}

inline float dequantise(const std::byte* wire, float inverse_scale) {
    return static_cast<float>(static_cast<std::int32_t>(load(wire))) * inverse_scale;
}

// True when the sum left 32 bits.
inline bool add(std::int32_t addend, std::int32_t& lane) {
    std::int32_t sum;
    const bool overflow = __builtin_add_overflow(addend, lane, &sum);
    const std::int32_t extreme =
        lane < 0 ? std::numeric_limits<std::int32_t>::min() : std::numeric_limits<std::int32_t>::max();
    lane = overflow ? extreme : sum;
    return overflow;
}

inline std::uint32_t sum_to_float(std::int64_t sum, double inverse_scale) {
    const float value = static_cast<float>(static_cast<double>(sum) * inverse_scale);
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

}  // namespace atp::numeric::lane
