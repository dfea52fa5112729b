// SPDX-License-Identifier: Apache-2.0
// This file is compiled for every vector instruction set, as half.cc is. Its loops have no branches, so that
// compilers vectorise them.
#include "numeric/lanes16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/lanes16.cc"
#include "hwy/foreach_target.h"
// Must follow foreach_target.h.
#include "hwy/highway.h"
#include "numeric/lane16.h"

HWY_BEFORE_NAMESPACE();
namespace atp::numeric::HWY_NAMESPACE {

bool quantise_int16(const float* values, std::size_t count, float scale, std::byte* int16_lanes) {
    std::int32_t fits = 1;
    for (std::size_t at = 0; at < count; ++at) fits &= short_lane::quantise(values[at], scale, int16_lanes + 2 * at);
    return fits != 0;
}

void int16_to_floats(const std::byte* int16_lanes, std::size_t count, double inverse_scale, std::byte* wire) {
    for (std::size_t at = 0; at < count; ++at) {
        lane::store(lane::sum_to_float(short_lane::load(int16_lanes + 2 * at), inverse_scale), wire + 4 * at);
    }
}

bool int16_add(const std::byte* int16_lanes, std::size_t count, std::byte* sums) {
    std::int32_t left = 0;
    for (std::size_t at = 0; at < count; ++at) left |= short_lane::add(int16_lanes + 2 * at, sums + 2 * at);
    return left != 0;
}

void sums_assign_int16(const std::byte* int16_lanes, std::size_t count, std::int64_t* sums) {
    for (std::size_t at = 0; at < count; ++at) sums[at] = short_lane::load(int16_lanes + 2 * at);
}

void sums_add_int16(const std::byte* int16_lanes, std::size_t count, std::int64_t* sums) {
    for (std::size_t at = 0; at < count; ++at) sums[at] += short_lane::load(int16_lanes + 2 * at);
}

bool sums_to_int16(const std::int64_t* sums, std::size_t count, std::byte* int16_lanes) {
    std::int64_t beyond = 0;
    for (std::size_t at = 0; at < count; ++at) {
        const auto lane = static_cast<std::int16_t>(sums[at]);
        beyond |= sums[at] ^ lane;
        short_lane::store(lane, int16_lanes + 2 * at);
    }
    return beyond == 0;
}

}  // namespace atp::numeric::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace atp::numeric {

namespace {
HWY_EXPORT(quantise_int16);
HWY_EXPORT(int16_to_floats);
HWY_EXPORT(int16_add);
HWY_EXPORT(sums_assign_int16);
HWY_EXPORT(sums_add_int16);
HWY_EXPORT(sums_to_int16);
}  // namespace

bool quantise_int16(const float* values, std::size_t count, float scale, std::byte* int16_lanes) {
    return HWY_DYNAMIC_DISPATCH(quantise_int16)(values, count, scale, int16_lanes);
}
void int16_to_floats(const std::byte* int16_lanes, std::size_t count, double inverse_scale, std::byte* wire) {
    HWY_DYNAMIC_DISPATCH(int16_to_floats)(int16_lanes, count, inverse_scale, wire);
}
bool int16_add(const std::byte* int16_lanes, std::size_t count, std::byte* sums) {
    return HWY_DYNAMIC_DISPATCH(int16_add)(int16_lanes, count, sums);
}
void sums_assign_int16(const std::byte* int16_lanes, std::size_t count, std::int64_t* sums) {
    HWY_DYNAMIC_DISPATCH(sums_assign_int16)(int16_lanes, count, sums);
}
void sums_add_int16(const std::byte* int16_lanes, std::size_t count, std::int64_t* sums) {
    HWY_DYNAMIC_DISPATCH(sums_add_int16)(int16_lanes, count, sums);
}
bool sums_to_int16(const std::int64_t* sums, std::size_t count, std::byte* int16_lanes) {
    return HWY_DYNAMIC_DISPATCH(sums_to_int16)(sums, count, int16_lanes);
}

}  // namespace atp::numeric
#endif
