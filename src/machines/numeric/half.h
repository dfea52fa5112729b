// SPDX-License-Identifier: Apache-2.0
// The 16-bit floats of training, as their bits: IEEE 754 binary16 ("half") and bfloat16, the upper half of a float32.
//
// To float32 every number is exact, and NaN keep sign and payload. From float32 numbers round to nearest, ties to even,
// subnormals and overflow to infinity included; NaN become quiet and keep their sign and what of the payload fits.
// Host order, aligned as the type asks, no overlap; no state, so any thread may call them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace atp::numeric {

void halves_to_floats(const std::uint16_t* halves, std::size_t count, float* floats);
void floats_to_halves(const float* floats, std::size_t count, std::uint16_t* halves);

void bfloats_to_floats(const std::uint16_t* bfloats, std::size_t count, float* floats);
void floats_to_bfloats(const float* floats, std::size_t count, std::uint16_t* bfloats);

}  // namespace atp::numeric
