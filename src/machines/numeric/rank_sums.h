// SPDX-License-Identifier: Apache-2.0
// Sums of the lanes of several ranks that lie in one memory. The bits are those of workers and a server.
// The rules for buffers, threads and rounding are those of lanes32_worker.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "numeric/element_type.h"

namespace atp::numeric {

// `ranks`: first lane of each rank, float32. Writes float32 lanes: an element that has an integer at `scale` on all
// ranks is float32(double(sum of integers) / scale), any other is the exact sum of the floats, rounded once.
// At most 65,536 ranks. Returns the largest magnitude of the sums; NaN if one of them is NaN.
float sum_float_ranks(std::span<const std::byte* const> ranks, std::size_t count, double scale, std::byte* wire);
// Takes the lanes of sum_float_ranks(), but writes the sums of integers, as a worker sends them. An element that has no
// integer on some rank, or whose sum leaves 32 bits, becomes INT32_MIN, which is no sum.
void scale_and_sum_ranks(std::span<const std::byte* const> ranks, std::size_t count, double scale, std::byte* wire);
// int32 lanes, modulo 2^32.
void sum_integer_ranks(std::span<const std::byte* const> ranks, std::size_t count, std::byte* wire);

struct NativeSum {
    ElementType type = ElementType::float32;  // float32, float16, bfloat16 or int64
    double scale = 1;                         // of floats
    double factor = 1;                        // of the sums; 1 for integers
};
// Elements in the byte order of the host, aligned to their type. A sum of floats is that of sum_float_ranks(), times
// the factor, rounded to float32, and rounded to the type. A sum of integers is modulo 2^64. Returns the largest
// magnitude of the sums of floats before the factor, as sum_float_ranks() does.
float sum_native_ranks(const NativeSum& sum, std::span<const std::byte* const> ranks, std::size_t count,
                       std::byte* sums);

}  // namespace atp::numeric
