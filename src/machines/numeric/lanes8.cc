// SPDX-License-Identifier: Apache-2.0
// This file is compiled for every vector instruction set, as lanes16.cc is. Its loops have no branches, so that
// compilers vectorise them.
#include "numeric/lanes8.h"

#include <algorithm>
#include <cmath>

#include "numeric/lane.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/lanes8.cc"
#include "hwy/foreach_target.h"
// Must follow foreach_target.h.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace atp::numeric::HWY_NAMESPACE {

inline std::int32_t lane_at(const std::byte* lanes, std::size_t at) { return static_cast<std::int8_t>(lanes[at]); }

bool quantise_int8(const float* values, std::size_t count, float scale, std::byte* int8_lanes) {
    // No lane is INT8_MIN, because some targets reserve both extremes for sums that exceeded 8 bits.
    constexpr float refused_magnitude = 127.5F;
    std::int32_t fits = 1;
    for (std::size_t at = 0; at < count; ++at) {
        const float product = values[at] * scale;
        const bool fit = std::fabs(product) < refused_magnitude;
        int8_lanes[at] = static_cast<std::byte>(static_cast<std::int32_t>(std::nearbyint(fit ? product : 0.0F)));
        fits &= fit ? 1 : 0;
    }
    return fits != 0;
}

void int8_to_floats(const std::byte* int8_lanes, std::size_t count, double inverse_scale, std::byte* wire) {
    for (std::size_t at = 0; at < count; ++at) {
        lane::store(lane::sum_to_float(lane_at(int8_lanes, at), inverse_scale), wire + 4 * at);
    }
}

bool int8_add(const std::byte* int8_lanes, std::size_t count, std::byte* sums) {
    constexpr std::int32_t highest = INT8_MAX;
    constexpr std::int32_t lowest = INT8_MIN;
    std::int32_t beyond = 0;
    for (std::size_t at = 0; at < count; ++at) {
        const std::int32_t sum = lane_at(int8_lanes, at) + lane_at(sums, at);
        const std::int32_t saturated = std::clamp(sum, lowest, highest);
        sums[at] = static_cast<std::byte>(saturated);
        beyond |= sum ^ saturated;
    }
    return beyond != 0;
}

void sums_assign_int8(const std::byte* int8_lanes, std::size_t count, std::int64_t* sums) {
    for (std::size_t at = 0; at < count; ++at) sums[at] = lane_at(int8_lanes, at);
}

void sums_add_int8(const std::byte* int8_lanes, std::size_t count, std::int64_t* sums) {
    for (std::size_t at = 0; at < count; ++at) sums[at] += lane_at(int8_lanes, at);
}

bool sums_to_int8(const std::int64_t* sums, std::size_t count, std::byte* int8_lanes) {
    std::int64_t beyond = 0;
    for (std::size_t at = 0; at < count; ++at) {
        const auto lane = static_cast<std::int8_t>(sums[at]);
        beyond |= sums[at] ^ lane;
        int8_lanes[at] = static_cast<std::byte>(lane);
    }
    return beyond == 0;
}

}  // namespace atp::numeric::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace atp::numeric {

namespace {
HWY_EXPORT(quantise_int8);
HWY_EXPORT(int8_to_floats);
HWY_EXPORT(int8_add);
HWY_EXPORT(sums_assign_int8);
HWY_EXPORT(sums_add_int8);
HWY_EXPORT(sums_to_int8);
}  // namespace

bool quantise_int8(const float* values, std::size_t count, float scale, std::byte* int8_lanes) {
    return HWY_DYNAMIC_DISPATCH(quantise_int8)(values, count, scale, int8_lanes);
}
void int8_to_floats(const std::byte* int8_lanes, std::size_t count, double inverse_scale, std::byte* wire) {
    HWY_DYNAMIC_DISPATCH(int8_to_floats)(int8_lanes, count, inverse_scale, wire);
}
bool int8_add(const std::byte* int8_lanes, std::size_t count, std::byte* sums) {
    return HWY_DYNAMIC_DISPATCH(int8_add)(int8_lanes, count, sums);
}
void sums_assign_int8(const std::byte* int8_lanes, std::size_t count, std::int64_t* sums) {
    HWY_DYNAMIC_DISPATCH(sums_assign_int8)(int8_lanes, count, sums);
}
void sums_add_int8(const std::byte* int8_lanes, std::size_t count, std::int64_t* sums) {
    HWY_DYNAMIC_DISPATCH(sums_add_int8)(int8_lanes, count, sums);
}
bool sums_to_int8(const std::int64_t* sums, std::size_t count, std::byte* int8_lanes) {
    return HWY_DYNAMIC_DISPATCH(sums_to_int8)(sums, count, int8_lanes);
}

}  // namespace atp::numeric
#endif
