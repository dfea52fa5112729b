// SPDX-License-Identifier: Apache-2.0
// Every case is computed and one is chosen, without a branch: so the compiler turns the loops into vectors by itself,
// once for every instruction set of the architecture (hwy/foreach_target.h includes this file again and again), and all
// of them give the same bits. The conversions that processors have, and the emulations of them, differ in NaN and in
// rounding.
#include "numeric/half.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/half.cc"
#include "hwy/foreach_target.h"
// Has to follow foreach_target.h.
#include <bit>
#include <limits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace atp::numeric::HWY_NAMESPACE {
namespace {

static_assert(std::numeric_limits<float>::is_iec559);

constexpr unsigned float_fraction_bits = 23;
constexpr unsigned half_fraction_bits = 10;
constexpr unsigned dropped_bits = float_fraction_bits - half_fraction_bits;
// Exponents count from -127 in a float32 and from -15 in a half.
constexpr std::uint32_t rebias = (127U - 15U) << float_fraction_bits;
constexpr std::uint32_t float_infinity = 0x7F800000;
constexpr std::uint32_t half_infinity = 0x7C00;
constexpr std::uint32_t half_quiet_nan = 0x7E00;
constexpr std::uint32_t half_least_normal = 0x0400;
constexpr std::uint32_t half_fraction_mask = half_least_normal - 1;

constexpr std::uint32_t two_to_16 = std::bit_cast<std::uint32_t>(65536.0F);
constexpr std::uint32_t two_to_minus_14 = std::bit_cast<std::uint32_t>(0x1p-14F);

// Magnitudes are below 2^31, so they are compared as signed: the oldest vectors know no other comparison.
HWY_INLINE bool less(std::uint32_t a, std::uint32_t b) {
    return static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b);
}

HWY_INLINE float half_to_float(std::uint16_t half) {
    const std::uint32_t magnitude = half & 0x7FFFU;
    const std::uint32_t normal = (magnitude << dropped_bits) + rebias;
    const std::uint32_t special = normal + rebias;  // the highest exponent of one is the highest of the other
    const auto subnormal =
        std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24F);
    std::uint32_t bits = less(magnitude, half_infinity) ? normal : special;
    bits = less(magnitude, half_least_normal) ? subnormal : bits;
    return std::bit_cast<float>(bits | (half & 0x8000U) << 16U);
}

HWY_INLINE std::uint16_t float_to_half(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    // Half of the last bit that stays, less one unless that bit is odd: ties go to even. A carry goes into the
    // exponent, and from the largest number into infinity.
    const std::uint32_t rounding = ((1U << (dropped_bits - 1)) - 1) + (magnitude >> dropped_bits & 1U);
    const std::uint32_t normal = (magnitude - rebias + rounding) >> dropped_bits;
    // In [0.5, 1) the last bit of a float32 is worth 2^-24, as that of a subnormal half: the addition rounds for us.
    const std::uint32_t subnormal =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - std::bit_cast<std::uint32_t>(0.5F);
    const std::uint32_t nan = half_quiet_nan | (magnitude >> dropped_bits & half_fraction_mask);
    const std::uint32_t special = less(float_infinity, magnitude) ? nan : half_infinity;
    std::uint32_t half = less(magnitude, two_to_16) ? normal : special;
    half = less(magnitude, two_to_minus_14) ? subnormal : half;
    return static_cast<std::uint16_t>(half | (bits >> 16U & 0x8000U));
}

HWY_INLINE std::uint16_t float_to_bfloat(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = bits + 0x7FFFU + (bits >> 16U & 1U);
    // Quiet, so that a payload of low bits alone does not turn into infinity.
    const std::uint32_t nan = bits | 0x00400000U;
    return static_cast<std::uint16_t>((less(float_infinity, bits & 0x7FFFFFFFU) ? nan : rounded) >> 16U);
}

}  // namespace

void halves_to_floats(const std::uint16_t* halves, std::size_t count, float* floats) {
    for (std::size_t at = 0; at < count; ++at) floats[at] = half_to_float(halves[at]);
}

void floats_to_halves(const float* floats, std::size_t count, std::uint16_t* halves) {
    for (std::size_t at = 0; at < count; ++at) halves[at] = float_to_half(floats[at]);
}

void bfloats_to_floats(const std::uint16_t* bfloats, std::size_t count, float* floats) {
    for (std::size_t at = 0; at < count; ++at) floats[at] = std::bit_cast<float>(std::uint32_t{bfloats[at]} << 16U);
}

void floats_to_bfloats(const float* floats, std::size_t count, std::uint16_t* bfloats) {
    for (std::size_t at = 0; at < count; ++at) bfloats[at] = float_to_bfloat(floats[at]);
}

}  // namespace atp::numeric::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace atp::numeric {

namespace {
HWY_EXPORT(halves_to_floats);
HWY_EXPORT(floats_to_halves);
HWY_EXPORT(bfloats_to_floats);
HWY_EXPORT(floats_to_bfloats);
}  // namespace

void halves_to_floats(const std::uint16_t* halves, std::size_t count, float* floats) {
    HWY_DYNAMIC_DISPATCH(halves_to_floats)(halves, count, floats);
}
void floats_to_halves(const float* floats, std::size_t count, std::uint16_t* halves) {
    HWY_DYNAMIC_DISPATCH(floats_to_halves)(floats, count, halves);
}
void bfloats_to_floats(const std::uint16_t* bfloats, std::size_t count, float* floats) {
    HWY_DYNAMIC_DISPATCH(bfloats_to_floats)(bfloats, count, floats);
}
void floats_to_bfloats(const float* floats, std::size_t count, std::uint16_t* bfloats) {
    HWY_DYNAMIC_DISPATCH(floats_to_bfloats)(floats, count, bfloats);
}

}  // namespace atp::numeric
#endif
