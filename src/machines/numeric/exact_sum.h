// SPDX-License-Identifier: Apache-2.0
// Sums of float32 that depend on nothing but the set of addends: the server's float mode. Each lane is a fixed-point
// number wide enough for every float32 and 65,536 of them, so adding is exact, order cannot matter, and one rounding
// happens at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace atp::numeric {

// Addends that one lane takes before it could overflow.
inline constexpr std::uint32_t exact_addends_max = 65536;

// One lane. All zero is the empty sum; read it with exact_round() only.
struct ExactLane {
    static constexpr std::size_t words = 5;

    // Two's complement, least significant word first, in units of the smallest float32, 2^-149.
    std::uint64_t sum[words];
    // What a fixed-point number cannot say: see exact_sum.cc. Sticky.
    std::uint64_t seen;
};
static_assert(std::is_trivially_copyable_v<ExactLane> && std::is_standard_layout_v<ExactLane>);

// Adds one packet's float32 lanes, big-endian and at any alignment.
void exact_add(const std::byte* wire_floats, std::size_t count, ExactLane* lanes);

// The sums rounded to float32, nearest even, subnormals and overflow to infinity included, as big-endian lanes.
// NaN among the addends, or infinities of both signs, give the canonical quiet NaN 0x7FC00000; one infinity gives
// itself. A sum of nothing but -0 is -0; every other zero, and the empty sum, is +0.
void exact_round(const ExactLane* lanes, std::size_t count, std::byte* wire);

}  // namespace atp::numeric
