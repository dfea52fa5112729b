// SPDX-License-Identifier: Apache-2.0
// int8 lanes: a quarter of the bytes of int32 lanes. In a packet and in the memory of the switch a lane has one byte,
// two's complement.
//
// `wire` is lanes of 4 bytes as in lanes32_worker.h.
// The buffers of one call must not overlap. The functions have no state, so any thread may call them. Every instruction
// set gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace atp::numeric {

inline constexpr std::size_t int8_lane_bytes = 1;

// Of a worker: computes values[i] * scale as a float32 and writes it rounded to an integer, ties to even. Returns false
// if a product is NaN, infinite, or at least 2^7 - 1/2 in magnitude: the lanes are then invalid. Otherwise they are
// -127 to 127.
[[nodiscard]] bool quantise_int8(const float* values, std::size_t count, float scale, std::byte* int8_lanes);
// float32(lane * inverse_scale), each step rounded to nearest even.
void int8_to_floats(const std::byte* int8_lanes, std::size_t count, double inverse_scale, std::byte* wire);

// Of a switch: sums[i] += int8_lanes[i]. A sum beyond 8 bits saturates; returns true if any sum of this call did.
[[nodiscard]] bool int8_add(const std::byte* int8_lanes, std::size_t count, std::byte* sums);

// Of a server.
void sums_assign_int8(const std::byte* int8_lanes, std::size_t count, std::int64_t* sums);
void sums_add_int8(const std::byte* int8_lanes, std::size_t count, std::int64_t* sums);
// Returns false if a sum exceeds 8 bits: the lanes are then invalid.
[[nodiscard]] bool sums_to_int8(const std::int64_t* sums, std::size_t count, std::byte* int8_lanes);

}  // namespace atp::numeric
