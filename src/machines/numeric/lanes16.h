// SPDX-License-Identifier: Apache-2.0
// int16 lanes: half the bytes, for elements whose scaled values fit 16 bits. In a packet and in the memory of the
// switch a lane has 2 bytes, two's complement, big-endian, at any alignment.
//
// `wire` is lanes of 4 bytes as in lanes32_worker.h. The buffers of one call must not overlap. The functions have no
// state, so any thread may call them. Every instruction set gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace atp::numeric {

inline constexpr std::size_t int16_lane_bytes = 2;

// ---------------------------------------------------------------------------------------------------------- Worker

// Computes values[i] * scale as a float32 and writes it rounded to an integer, ties to even. Returns false if a product
// is NaN, infinite, or at least 2^15 - 1/2 in magnitude: the lanes are then invalid. Otherwise they are -32,767 to
// 32,767.
[[nodiscard]] bool quantise_int16(const float* values, std::size_t count, float scale, std::byte* int16_lanes);

// float32(lane * inverse_scale), each step rounded to nearest even.
void int16_to_floats(const std::byte* int16_lanes, std::size_t count, double inverse_scale, std::byte* wire);

// ---------------------------------------------------------------------------------------------------------- Switch

// sums[i] += int16_lanes[i]. A sum beyond 16 bits saturates; returns true if any sum of this call did.
[[nodiscard]] bool int16_add(const std::byte* int16_lanes, std::size_t count, std::byte* sums);

// ---------------------------------------------------------------------------------------------------------- Server

void sums_assign_int16(const std::byte* int16_lanes, std::size_t count, std::int64_t* sums);
void sums_add_int16(const std::byte* int16_lanes, std::size_t count, std::int64_t* sums);
// Returns false if a sum exceeds 16 bits: the lanes are then invalid.
[[nodiscard]] bool sums_to_int16(const std::int64_t* sums, std::size_t count, std::byte* int16_lanes);

}  // namespace atp::numeric
