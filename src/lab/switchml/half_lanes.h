// SPDX-License-Identifier: Apache-2.0
// Conversion between int32 lanes and float16 lanes (SwitchML §3.7): packets carry float16, the switch adds integers.
// Float16 halves the bytes and keeps 11 bits of precision.
//
// The float16 x represents the integer x * 2^15. The largest float16 therefore represents the largest int32, rounded to
// 11 bits, and 2^-15 represents the integer 1. `wire` holds int32 lanes as in numeric/lanes32_worker.h, `halves` 2
// bytes per lane. Both are big-endian, may have any alignment, and must not overlap. Threads: any thread; the functions
// have no state.
#pragma once

#include <cstddef>

namespace atp::switchml {

// Rounds integers to float32 and then to float16, to nearest, ties to even. If a value exceeds the largest float16,
// writes infinity for it and returns false.
[[nodiscard]] bool lanes_to_halves(const std::byte* wire, std::size_t count, std::byte* halves);

// Rounds to the nearest integer. If a lane is infinite or NaN, returns false; the contents of `wire` are then
// unspecified.
[[nodiscard]] bool halves_to_lanes(const std::byte* halves, std::size_t count, std::byte* wire);

}  // namespace atp::switchml
