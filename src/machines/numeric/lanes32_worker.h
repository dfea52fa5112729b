// SPDX-License-Identifier: Apache-2.0
// Arithmetic of a worker on int32 lanes: scaling, and moving floats.
//
// "wire" is lanes as in a packet: 4 bytes each, big-endian, at any alignment. All other buffers are in host byte
// order and aligned to their type. The buffers of one call must not overlap. The functions have no state, so any
// thread may call them. They select the widest vectors of the processor at run time, and every selection gives the
// same bits. They require the floating-point environment of a program's start: round to nearest, ties to even.
#pragma once

#include <cstddef>
#include <cstdint>

namespace atp::numeric {

// Writes round(values[i] * scale), ties to even, as int32 lanes. The product is rounded to a float32 (24 significant
// bits), which is the precision of the gradient. Returns false if a product is NaN, infinite, or at least 2^31 in
// magnitude. The lanes are then invalid, and the fragment must be sent as floats. Otherwise no lane is INT32_MIN, so a
// target that reserves both extremes as sentinels finds one only after an overflow.
[[nodiscard]] bool quantise(const float* values, std::size_t count, float scale, std::byte* wire);

// True if a lane is above this magnitude, which is at most 2^31 - 1.
[[nodiscard]] bool exceeds(const std::byte* wire, std::size_t count, std::uint32_t magnitude);

// values[i] = float(lane) * inverse_scale, each step rounded to float32.
void dequantise(const std::byte* wire, std::size_t count, float inverse_scale, float* values);

// Largest magnitude of the values; NaN if one of them is NaN.
[[nodiscard]] float largest_magnitude(const float* values, std::size_t count);

// Copy floats and change only their byte order; NaN keep their payloads. floats_from_wire() returns largest_magnitude()
// of the values, which it finds on the way.
void floats_to_wire(const float* values, std::size_t count, std::byte* wire);
float floats_from_wire(const std::byte* wire, std::size_t count, float* values);

}  // namespace atp::numeric
