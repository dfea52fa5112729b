// SPDX-License-Identifier: Apache-2.0
// Sums of float32 that depend only on the set of addends, for the server's mode floats. Each lane is a fixed-point
// number that holds the sum of any 65,536 float32. Additions are therefore exact and their order has no effect. Only
// the final conversion rounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace atp::numeric {

// Number of addends up to which a lane cannot overflow.
inline constexpr std::uint32_t exact_addends_max = 65536;

// One lane. All zero: the empty sum. Only exact_round() can read it.
struct ExactLane {
    static constexpr std::size_t words = 5;

    // Two's complement, least significant word first, in units of the smallest float32, 2^-149.
    std::uint64_t sum[words];
    // Sticky bits for NaN, infinities and -0, which a fixed-point number cannot represent: see exact_sum.cc.
    std::uint64_t seen;
};
static_assert(std::is_trivially_copyable_v<ExactLane> && std::is_standard_layout_v<ExactLane>);

// Adds the float32 lanes of one packet, big-endian and at any alignment.
void exact_add(const std::byte* wire_floats, std::size_t count, ExactLane* lanes);

// Writes the sums as big-endian lanes, rounded to the nearest float32, ties to even. The result may be subnormal, or
// infinity after an overflow. NaN among the addends, or infinities of both signs, give the quiet NaN 0x7FC00000.
// Infinities of one sign give that infinity. A sum of only -0 is -0; every other zero sum, and the empty sum, is +0.
void exact_round(const ExactLane* lanes, std::size_t count, std::byte* wire);

}  // namespace atp::numeric
