// SPDX-License-Identifier: Apache-2.0
// Arithmetic on the lanes of a packet: scaling on the worker, saturating sums in the switch, 64-bit sums on the
// server.
//
// "wire" is lanes as in a packet: 4 bytes each, big-endian, at any alignment. All other buffers are in host byte
// order and aligned to their type. The buffers of one call must not overlap. The functions have no state, so any
// thread may call them. They select the widest vectors of the processor at run time, and every selection gives the
// same bits. They require the floating-point environment of a program's start: round to nearest, ties to even.
#pragma once

#include <cstddef>
#include <cstdint>

namespace atp::numeric {

// ---------------------------------------------------------------------------------------------------------- Worker

// Writes round(values[i] * scale), ties to even, as int32 lanes. The product is a float32, rounded to 24 bits: a
// float32 gradient has no more.
// Returns false if a product is NaN, infinite, or at least 2^31 in magnitude. The lanes are then invalid, and the
// fragment must travel as floats. Otherwise lanes are within [-(2^31 - 1), 2^31 - 1]. INT32_MIN never leaves a
// worker, so a target that reserves both extremes as sentinels finds one only after an overflow.
[[nodiscard]] bool quantise(const float* values, std::size_t count, float scale, std::byte* wire);

// values[i] = float(lane) * inverse_scale, each step rounded to float32.
void dequantise(const std::byte* wire, std::size_t count, float inverse_scale, float* values);

// Largest magnitude of the values; NaN if one of them is NaN.
[[nodiscard]] float largest_magnitude(const float* values, std::size_t count);

// Copy floats and change only their byte order; NaN keep their payloads.
void floats_to_wire(const float* values, std::size_t count, std::byte* wire);
void floats_from_wire(const std::byte* wire, std::size_t count, float* values);

// ---------------------------------------------------------------------------------------------------------- Switch

// First contribution: copies the lanes of the packet to the aggregator.
void lanes_store(const std::byte* wire, std::size_t count, std::int32_t* lanes);

// Further contribution: adds the lanes of the packet. A sum beyond 32 bits saturates; returns true if any lane of
// this call did. The caller keeps the result as a sticky flag. Once it is set the lanes are invalid, even if later
// contributions bring them back into range.
[[nodiscard]] bool lanes_add(const std::byte* wire, std::size_t count, std::int32_t* lanes);

// Last contribution: as lanes_add(), and writes the sums to the packet.
[[nodiscard]] bool lanes_add_emit(std::byte* wire, std::size_t count, std::int32_t* lanes);

// Copies the lanes of the aggregator to a packet.
void lanes_emit(const std::int32_t* lanes, std::size_t count, std::byte* wire);

// ---------------------------------------------------------------------------------------------------------- Server

// Sums of int32 lanes in 64 bits: at least 2^31 contributions without overflow.
void sums_assign(const std::byte* wire, std::size_t count, std::int64_t* sums);
void sums_add(const std::byte* wire, std::size_t count, std::int64_t* sums);

// Lanes of a float32 ACK: float32(double(sum) * inverse_scale), each step rounded to nearest even.
void sums_to_floats(const std::int64_t* sums, std::size_t count, double inverse_scale, std::byte* wire);
// sums_assign() and sums_to_floats() in one pass, for a sum of all workers that arrived in one packet.
void lanes_to_floats(const std::byte* from, std::size_t count, double inverse_scale, std::byte* wire);

// Lanes of an ACK of a PLAIN fragment: the sums modulo 2^32.
void sums_to_integers(const std::int64_t* sums, std::size_t count, std::byte* wire);

}  // namespace atp::numeric
