// SPDX-License-Identifier: Apache-2.0
// Operations on one lane, equal to those of the vector loops of lanes32_*.cc. They serve the tails of these loops,
// processors without supported vectors, and graphics processors.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "numeric/host_device.h"

namespace atp::numeric::lane {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "lanes are swapped unconditionally");
static_assert(std::numeric_limits<float>::is_iec559 && std::numeric_limits<double>::is_iec559);

// The bits of 2^31 as a float32. Without the sign, larger bit patterns are larger numbers, infinity or NaN.
inline constexpr std::int32_t refused_magnitude_bits = 0x4F000000;
inline constexpr float refused_magnitude = 2147483648.0F;

// Compilers turn this into one instruction.
ATP_HOST_DEVICE constexpr std::uint32_t swap_bytes(std::uint32_t bits) {
    return bits << 24U | (bits & 0xFF00U) << 8U | (bits >> 8U & 0xFF00U) | bits >> 24U;
}

inline std::uint32_t load(const std::byte* wire) {
    std::uint32_t bits;
    std::memcpy(&bits, wire, sizeof bits);
    return swap_bytes(bits);
}

inline void store(std::uint32_t bits, std::byte* wire) {
    bits = swap_bytes(bits);
    std::memcpy(wire, &bits, sizeof bits);
}

// Result for a product that is out of range. No product in range gives this integer.
inline constexpr std::int32_t refused = std::numeric_limits<std::int32_t>::min();

ATP_HOST_DEVICE inline std::int32_t quantise(float value, float scale) {
    const float product = value * scale;
    const bool fits = std::fabs(product) < refused_magnitude;
    return fits ? static_cast<std::int32_t>(std::nearbyint(product)) : refused;
}

// True if the product is out of range.
inline bool quantise(float value, float scale, std::byte* wire) {
    const std::int32_t integer = quantise(value, scale);
    store(static_cast<std::uint32_t>(integer), wire);
    return integer == refused;
}

inline float dequantise(const std::byte* wire, float inverse_scale) {
    return static_cast<float>(static_cast<std::int32_t>(load(wire))) * inverse_scale;
}

// True if the sum exceeded 32 bits; the lane then saturates.
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

// For sums of floats in 32 bits.
struct FloatScale {
    float scale;
    double inverse_scale;
    // The bits of the magnitude that no product may reach, so that no sum leaves 32 bits. Without the sign, larger bit
    // patterns are larger numbers, infinity or NaN.
    std::int32_t limit_bits;
};

}  // namespace atp::numeric::lane
