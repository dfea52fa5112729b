// SPDX-License-Identifier: Apache-2.0
// Arithmetic of a server on int32 lanes: 64-bit sums.
// The rules for buffers, threads and rounding are those of lanes32_worker.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace atp::numeric {

// Sums of int32 lanes in 64 bits: at least 2^31 contributions without overflow.
void sums_assign(const std::byte* wire, std::size_t count, std::int64_t* sums);
void sums_add(const std::byte* wire, std::size_t count, std::int64_t* sums);

// Lanes of a float32 ACK: float32(double(sum) * inverse_scale), each step rounded to nearest even.
void sums_to_floats(const std::int64_t* sums, std::size_t count, double inverse_scale, std::byte* wire);
// sums_assign() and sums_to_floats() in one pass, for a sum of all workers that arrived in one packet.
void lanes_to_floats(const std::byte* from, std::size_t count, double inverse_scale, std::byte* wire);

// Numbers that arrive as float32 and are summed as integers where all of them have one: adds round(x * scale) to each
// sum, as quantise() does. A sum with an x without an integer becomes `no_sum` and stays so.
inline constexpr std::int64_t no_sum = std::numeric_limits<std::int64_t>::min();
void sums_add_floats(const std::byte* wire_floats, std::size_t count, float scale, std::int64_t* sums);
// sums_to_floats() for the sums that are not `no_sum`. The other lanes keep their content.
void known_sums_to_floats(const std::int64_t* sums, std::size_t count, double inverse_scale, std::byte* wire);

// Lanes of an ACK of a PLAIN fragment: the sums modulo 2^32.
void sums_to_integers(const std::int64_t* sums, std::size_t count, std::byte* wire);

}  // namespace atp::numeric
