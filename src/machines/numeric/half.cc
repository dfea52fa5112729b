// SPDX-License-Identifier: Apache-2.0
// This file is compiled for every vector instruction set of the architecture: hwy/foreach_target.h includes it
// repeatedly. Every instruction set gives the same bits. The code does not use the conversions of processors or their
// emulations, which differ in NaN and in rounding.
#include "numeric/half.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/half.cc"
#include "hwy/foreach_target.h"
// Must follow foreach_target.h.
#include "hwy/highway.h"
#include "numeric/half_bits.h"

HWY_BEFORE_NAMESPACE();
namespace atp::numeric::HWY_NAMESPACE {

void halves_to_floats(const std::uint16_t* halves, std::size_t count, float* floats) {
    for (std::size_t at = 0; at < count; ++at) floats[at] = half::to_float(halves[at]);
}

void floats_to_halves(const float* floats, std::size_t count, std::uint16_t* halves) {
    for (std::size_t at = 0; at < count; ++at) halves[at] = half::from_float(floats[at]);
}

void bfloats_to_floats(const std::uint16_t* bfloats, std::size_t count, float* floats) {
    for (std::size_t at = 0; at < count; ++at) floats[at] = half::bfloat_to_float(bfloats[at]);
}

void floats_to_bfloats(const float* floats, std::size_t count, std::uint16_t* bfloats) {
    for (std::size_t at = 0; at < count; ++at) bfloats[at] = half::bfloat_from_float(floats[at]);
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
