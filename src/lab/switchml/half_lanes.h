// SPDX-License-Identifier: Apache-2.0
// Lanes that travel as 16-bit floats and are summed as integers (SwitchML §3.7): half the bytes, 11 bits of precision.
//
// A float16 stands for the integer 2^15 times as large: so its largest number stands for the largest int32 to 11 bits,
// and 1 for the integer 1. "wire" is int32 lanes as in lanes.h, "halves" 2 bytes each, both big-endian, at any
// alignment, and never overlapping. No state, so any thread may call them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace atp::switchml {

// Integers are rounded to float32 and then to float16, to nearest, ties to even. False when one is beyond the largest
// float16; infinity then stands for it.
[[nodiscard]] bool lanes_to_halves(const std::byte* wire, std::size_t count, std::byte* halves);

// Rounded to the nearest integer. False when one is infinite or NaN; the lanes then mean nothing.
[[nodiscard]] bool halves_to_lanes(const std::byte* halves, std::size_t count, std::byte* wire);

}  // namespace atp::switchml
