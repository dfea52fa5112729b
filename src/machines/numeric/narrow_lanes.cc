// SPDX-License-Identifier: Apache-2.0
// This file is compiled for every vector instruction set, as half.cc is. Its loops have no branches, so that
// compilers vectorise them.
#include "numeric/narrow_lanes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "numeric/lane.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/narrow_lanes.cc"
#include "hwy/foreach_target.h"
// Must follow foreach_target.h.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace atp::numeric::HWY_NAMESPACE {

// One lane in memory. int16 and int8 differ in nothing else.
template <class Integer>
std::int32_t load_lane(const std::byte* lanes, std::size_t at) {
    if constexpr (sizeof(Integer) == 1) {
        return static_cast<Integer>(lanes[at]);
    } else {
        std::uint16_t bits;
        std::memcpy(&bits, lanes + sizeof bits * at, sizeof bits);
        return static_cast<Integer>(__builtin_bswap16(bits));
    }
}

template <class Integer>
void store_lane(std::int32_t lane, std::byte* lanes, std::size_t at) {
    if constexpr (sizeof(Integer) == 1) {
        lanes[at] = static_cast<std::byte>(lane);
    } else {
        const std::uint16_t bits = __builtin_bswap16(static_cast<std::uint16_t>(lane));
        std::memcpy(lanes + sizeof bits * at, &bits, sizeof bits);
    }
}

template <class Integer>
bool quantise_narrow(const float* values, std::size_t count, float scale, std::byte* lanes) {
    constexpr float refused_magnitude = std::numeric_limits<Integer>::max() + 0.5F;
    std::int32_t fits = 1;
    for (std::size_t at = 0; at < count; ++at) {
        const float product = values[at] * scale;
        const bool fit = std::fabs(product) < refused_magnitude;
        store_lane<Integer>(static_cast<std::int32_t>(std::nearbyint(fit ? product : 0.0F)), lanes, at);
        fits &= fit ? 1 : 0;
    }
    return fits != 0;
}

template <class Integer>
void narrow_to_floats(const std::byte* lanes, std::size_t count, double inverse_scale, std::byte* wire) {
    for (std::size_t at = 0; at < count; ++at) {
        lane::store(lane::sum_to_float(load_lane<Integer>(lanes, at), inverse_scale), wire + 4 * at);
    }
}

template <class Integer>
bool add_narrow(const std::byte* lanes, std::size_t count, std::byte* sums) {
    constexpr std::int32_t highest = std::numeric_limits<Integer>::max();
    constexpr std::int32_t lowest = -highest - 1;
    std::int32_t beyond = 0;
    for (std::size_t at = 0; at < count; ++at) {
        const std::int32_t sum = load_lane<Integer>(lanes, at) + load_lane<Integer>(sums, at);
        const std::int32_t saturated = std::clamp(sum, lowest, highest);
        store_lane<Integer>(saturated, sums, at);
        beyond |= sum ^ saturated;
    }
    return beyond != 0;
}

template <class Integer>
void assign_narrow(const std::byte* lanes, std::size_t count, std::int64_t* sums) {
    for (std::size_t at = 0; at < count; ++at) sums[at] = load_lane<Integer>(lanes, at);
}

template <class Integer>
void add_narrow_sums(const std::byte* lanes, std::size_t count, std::int64_t* sums) {
    for (std::size_t at = 0; at < count; ++at) sums[at] += load_lane<Integer>(lanes, at);
}

template <class Integer>
bool sums_to_narrow(const std::int64_t* sums, std::size_t count, std::byte* lanes) {
    std::int64_t beyond = 0;
    for (std::size_t at = 0; at < count; ++at) {
        const auto lane = static_cast<Integer>(sums[at]);
        beyond |= sums[at] ^ lane;
        store_lane<Integer>(lane, lanes, at);
    }
    return beyond == 0;
}

template <class Integer>
const NarrowLanes& lanes_of() {
    static constexpr NarrowLanes lanes{sizeof(Integer),        quantise_narrow<Integer>, narrow_to_floats<Integer>,
                                       add_narrow<Integer>,    assign_narrow<Integer>,   add_narrow_sums<Integer>,
                                       sums_to_narrow<Integer>};
    return lanes;
}

const NarrowLanes& int16_lanes() { return lanes_of<std::int16_t>(); }
const NarrowLanes& int8_lanes() { return lanes_of<std::int8_t>(); }

}  // namespace atp::numeric::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace atp::numeric {

namespace {
HWY_EXPORT(int16_lanes);
HWY_EXPORT(int8_lanes);
}  // namespace

const NarrowLanes& int16_lanes() { return HWY_DYNAMIC_DISPATCH(int16_lanes)(); }
const NarrowLanes& int8_lanes() { return HWY_DYNAMIC_DISPATCH(int8_lanes)(); }

}  // namespace atp::numeric
#endif
