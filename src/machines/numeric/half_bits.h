// SPDX-License-Identifier: Apache-2.0
// Conversions of one 16-bit float, for the loops of half.cc and for graphics processors. Each function computes all
// cases and selects one without a branch, so that compilers vectorise loops of them. Compile this file without fused
// multiply-add (-ffp-contract=off, -fmad=false), which would change bits.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "numeric/host_device.h"

namespace atp::numeric::half {

static_assert(std::numeric_limits<float>::is_iec559);

inline constexpr unsigned float_fraction_bits = 23;
inline constexpr unsigned half_fraction_bits = 10;
inline constexpr unsigned dropped_bits = float_fraction_bits - half_fraction_bits;
// The exponent bias is 127 in a float32 and 15 in a half.
inline constexpr std::uint32_t rebias = (127U - 15U) << float_fraction_bits;
inline constexpr std::uint32_t float_infinity = 0x7F800000;
inline constexpr std::uint32_t half_infinity = 0x7C00;
inline constexpr std::uint32_t half_quiet_nan = 0x7E00;
inline constexpr std::uint32_t half_least_normal = 0x0400;
inline constexpr std::uint32_t half_fraction_mask = half_least_normal - 1;

inline constexpr std::uint32_t two_to_16 = std::bit_cast<std::uint32_t>(65536.0F);
inline constexpr std::uint32_t two_to_minus_14 = std::bit_cast<std::uint32_t>(0x1p-14F);

// Magnitudes are below 2^31, so a signed comparison is correct. The oldest vector instruction sets have no other.
ATP_HOST_DEVICE inline bool less(std::uint32_t a, std::uint32_t b) {
    return static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b);
}

ATP_HOST_DEVICE inline float to_float(std::uint16_t half) {
    const std::uint32_t magnitude = half & 0x7FFFU;
    const std::uint32_t normal = (magnitude << dropped_bits) + rebias;
    const std::uint32_t special = normal + rebias;  // the highest exponent of a half becomes that of a float32
    const auto subnormal =
        std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24F);
    std::uint32_t bits = less(magnitude, half_infinity) ? normal : special;
    bits = less(magnitude, half_least_normal) ? subnormal : bits;
    return std::bit_cast<float>(bits | (half & 0x8000U) << 16U);
}

ATP_HOST_DEVICE inline std::uint16_t from_float(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    // Rounding adds half of the last kept bit. If that bit is even, it adds one less, so that ties go to even. A carry
    // enters the exponent, and turns the largest number into infinity.
    const std::uint32_t rounding = ((1U << (dropped_bits - 1)) - 1) + (magnitude >> dropped_bits & 1U);
    const std::uint32_t normal = (magnitude - rebias + rounding) >> dropped_bits;
    // In [0.5, 1) the last bit of a float32 is worth 2^-24, like the last bit of a subnormal half: the addition
    // rounds.
    const std::uint32_t subnormal =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - std::bit_cast<std::uint32_t>(0.5F);
    const std::uint32_t nan = half_quiet_nan | (magnitude >> dropped_bits & half_fraction_mask);
    const std::uint32_t special = less(float_infinity, magnitude) ? nan : half_infinity;
    std::uint32_t half = less(magnitude, two_to_16) ? normal : special;
    half = less(magnitude, two_to_minus_14) ? subnormal : half;
    return static_cast<std::uint16_t>(half | (bits >> 16U & 0x8000U));
}

ATP_HOST_DEVICE inline std::uint16_t bfloat_from_float(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = bits + 0x7FFFU + (bits >> 16U & 1U);
    // Set the quiet bit: a NaN with payload in its low bits only would otherwise become infinity.
    const std::uint32_t nan = bits | 0x00400000U;
    return static_cast<std::uint16_t>((less(float_infinity, bits & 0x7FFFFFFFU) ? nan : rounded) >> 16U);
}

ATP_HOST_DEVICE inline float bfloat_to_float(std::uint16_t bfloat) {
    return std::bit_cast<float>(std::uint32_t{bfloat} << 16U);
}

}  // namespace atp::numeric::half
