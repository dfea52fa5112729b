// SPDX-License-Identifier: Apache-2.0
// Lanes of 16 bits: half the bytes, for numbers whose scale fits them.
//
// "shorts" are such lanes as they stand in a packet, in the switch's memory as well: 2 bytes each, two's complement,
// big-endian, at any alignment. "wire" is lanes of 4 bytes as in lanes.h. Buffers of one call never overlap. No state,
// so any thread may call them; every instruction set gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace atp::numeric {

inline constexpr std::size_t short_bytes = 2;

// ---------------------------------------------------------------------------------------------------------- Worker

// round(values[i] * scale), ties to even, of the float32 product. False when some product is NaN, infinite, or at or
// beyond 2^15 - 1/2 in magnitude; the lanes then mean nothing. So they are within +-(2^15 - 1).
[[nodiscard]] bool quantise_shorts(const float* values, std::size_t count, float scale, std::byte* shorts);

// float32(lane * inverse_scale), each step rounded to nearest even.
void shorts_to_floats(const std::byte* shorts, std::size_t count, double inverse_scale, std::byte* wire);

// ---------------------------------------------------------------------------------------------------------- Switch

// sums[i] += shorts[i]. A sum that leaves 16 bits saturates; true when any of this call did.
[[nodiscard]] bool shorts_add(const std::byte* shorts, std::size_t count, std::byte* sums);

// ---------------------------------------------------------------------------------------------------------- Server

void sums_assign_shorts(const std::byte* shorts, std::size_t count, std::int64_t* sums);
void sums_add_shorts(const std::byte* shorts, std::size_t count, std::int64_t* sums);
// False when some sum is beyond 16 bits; the lanes then mean nothing.
[[nodiscard]] bool sums_to_shorts(const std::int64_t* sums, std::size_t count, std::byte* shorts);

}  // namespace atp::numeric
