// SPDX-License-Identifier: Apache-2.0
// Sums of the lanes of several ranks that lie in one memory. The bits are those of workers and a server.
// The rules for buffers, threads and rounding are those of lanes32_worker.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace atp::numeric {

// `ranks`: first lane of each rank, float32. Writes float32 lanes: an element that has an integer at `scale` on all
// ranks is float32(double(sum of integers) / scale), any other is the exact sum of the floats, rounded once.
// At most 65,536 ranks.
void sum_float_ranks(std::span<const std::byte* const> ranks, std::size_t count, double scale, std::byte* wire);
// Likewise, but writes the sums of integers, as a worker sends them. An element that has no integer on some rank, or
// whose sum leaves 32 bits, becomes INT32_MIN, which is no sum.
void scale_and_sum_ranks(std::span<const std::byte* const> ranks, std::size_t count, double scale, std::byte* wire);
// Integers of 64 bits in the byte order of the host, modulo 2^64; 8-byte aligned.
void sum_wide_ranks(std::span<const std::byte* const> ranks, std::size_t count, std::byte* sums);
// int32 lanes, modulo 2^32.
void sum_integer_ranks(std::span<const std::byte* const> ranks, std::size_t count, std::byte* wire);

}  // namespace atp::numeric
