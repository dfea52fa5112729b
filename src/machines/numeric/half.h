// SPDX-License-Identifier: Apache-2.0
// 16-bit floats as bits: IEEE 754 binary16 ("half"), and bfloat16, the upper half of a float32.
//
// Conversion to float32 is exact, and a NaN keeps its sign and payload. Conversion from float32 rounds to nearest,
// ties to even; the result may be subnormal or, after an overflow, infinity. A NaN becomes quiet and keeps its sign
// and the part of its payload that fits. Buffers are in host byte order, aligned to their type, and do not overlap.
// The functions have no state, so any thread may call them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace atp::numeric {

void halves_to_floats(const std::uint16_t* halves, std::size_t count, float* floats);
void floats_to_halves(const float* floats, std::size_t count, std::uint16_t* halves);

void bfloats_to_floats(const std::uint16_t* bfloats, std::size_t count, float* floats);
void floats_to_bfloats(const float* floats, std::size_t count, std::uint16_t* bfloats);

}  // namespace atp::numeric
