// SPDX-License-Identifier: Apache-2.0
// Arithmetic on the lanes of a packet: scaling on the worker, saturating sums in the switch, 64-bit sums on the server.
//
// "wire" is the lanes as they stand in a packet: 4 bytes each, big-endian, at any alignment. All other buffers are in
// host order and aligned as their type asks. Buffers of one call never overlap. Functions keep no state, so any thread
// may call them; the widest vectors of the processor at hand are chosen at run time, and every choice gives the same
// bits. The floating-point environment is expected as a program starts with it: round to nearest, ties to even.
#pragma once

#include <cstddef>
#include <cstdint>

namespace atp::numeric {

// ---------------------------------------------------------------------------------------------------------- Worker

// Writes round(values[i] * scale), ties to even, as int32 lanes. The product is that of float32: rounded to 24 bits
// first, as everything a float32 gradient can say is.
// False when some product is NaN, infinite, or at or beyond 2^31 in magnitude; the lanes then mean nothing and the
// fragment has to travel as floats. Lanes are thus within [-(2^31 - 1), 2^31 - 1]: INT32_MIN never leaves a worker, so
// a target that must keep both extremes as sentinels meets one only where something overflowed.
[[nodiscard]] bool quantise(const float* values, std::size_t count, float scale, std::byte* wire);

// values[i] = float(lane) * inverse_scale, each step rounded to float32.
void dequantise(const std::byte* wire, std::size_t count, float inverse_scale, float* values);

// The largest magnitude among the values; NaN when one of them is.
[[nodiscard]] float largest_magnitude(const float* values, std::size_t count);

// Floats as they are, NaN payloads included: only the byte order changes.
void floats_to_wire(const float* values, std::size_t count, std::byte* wire);
void floats_from_wire(const std::byte* wire, std::size_t count, float* values);

// ---------------------------------------------------------------------------------------------------------- Switch

// The first contribution: the aggregator's lanes become those of the packet.
void lanes_store(const std::byte* wire, std::size_t count, std::int32_t* lanes);

// A further contribution. A sum that leaves 32 bits saturates; true when any lane of this call did. The caller keeps
// that as a sticky flag: once it is set the lanes are never used, however later contributions bring them back.
[[nodiscard]] bool lanes_add(const std::byte* wire, std::size_t count, std::int32_t* lanes);

// The last contribution: as lanes_add, and the packet's own lanes become the sums.
[[nodiscard]] bool lanes_add_emit(std::byte* wire, std::size_t count, std::int32_t* lanes);

// What the aggregator holds, into a packet.
void lanes_emit(const std::int32_t* lanes, std::size_t count, std::byte* wire);

// ---------------------------------------------------------------------------------------------------------- Server

// Sums of int32 lanes in 64 bits: 2^31 contributions and more without overflow.
void sums_assign(const std::byte* wire, std::size_t count, std::int64_t* sums);
void sums_add(const std::byte* wire, std::size_t count, std::int64_t* sums);

// The lanes of an ACK of scaled numbers: float32(double(sum) * inverse_scale), each step rounded to nearest even.
void sums_to_floats(const std::int64_t* sums, std::size_t count, double inverse_scale, std::byte* wire);
// The same of sums that came whole in one packet: sums_assign() and sums_to_floats() in one pass.
void lanes_to_floats(const std::byte* from, std::size_t count, double inverse_scale, std::byte* wire);

// Those of an ACK of plain integers: the sums modulo 2^32.
void sums_to_integers(const std::int64_t* sums, std::size_t count, std::byte* wire);

}  // namespace atp::numeric
