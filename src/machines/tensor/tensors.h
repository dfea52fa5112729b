// SPDX-License-Identifier: Apache-2.0
// Tensors over a caller's memory, one for each type of element. Each converts elements to lanes and sums to elements.
//
// - float32, float64, float16, bfloat16: one lane, the element as a float32 that is scaled to an integer. A float64 is
//   rounded to float32 first; the other types convert exactly. If an element of the fragment does not fit an integer,
//   the fragment carries float32. The float32 sum is multiplied by `factor` in float64. A float64 element stores that
//   product, a float32 element stores it rounded to float32, and a 16-bit element stores that float32 rounded once
//   more. Infinities and NaN are preserved.
// - int32: one plain lane. The sum is modulo 2^32.
// - int64: three plain lanes. The sum is modulo 2^64 (see lanes_of_int64).
//
// Ownership: the caller owns the memory, which must outlive the tensor. `in` and `out` may be the same memory; any
//   other overlap is forbidden. Both are aligned for their element.
// Calling order: make a tensor, submit it to a protocol::Worker, destroy it after its event was polled.
// Threads: several workers may drive parts that share no element.
// Failure: none. The protocol carries numbers that do not fit an integer as floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "numeric/element_type.h"
#include "protocol/tensor.h"

namespace atp::tensor {

// `scale` is the scale of the job; integers ignore it. `factor` is 1 for a sum and 1/N for an average; for integers it
// must be 1. The tensor's size() counts lanes.
[[nodiscard]] std::unique_ptr<protocol::Tensor> make_sum_tensor(numeric::ElementType type, const void* in, void* out,
                                                                std::size_t elements, float scale, double factor);

// Sends the bytes of one worker to all. That worker passes them as `root`; each other worker passes nullptr and
// contributes zeros. `source`: number of that worker, if it is known; ranks that share memory then copy only its bytes.
// The result is written to `out`, unless that is nullptr. A lane has 4 bytes; memory needs no alignment.
[[nodiscard]] std::unique_ptr<protocol::Tensor> make_broadcast_tensor(const void* root, void* out, std::size_t bytes,
                                                                      std::optional<std::uint32_t> source = {});

// The lanes of an int64: its digits to the base 2^22, balanced around zero,
//
//     value = lane[0] + lane[1] 2^22 + lane[2] 2^44   modulo 2^64,
//     -2^21 <= lane[0], lane[1] < 2^21,  -2^19 <= lane[2] < 2^19.
//
// A job has at most 1,024 = 2^10 workers. Every sum of lanes, of any set of workers in any order, therefore lies within
// [-2^31, 2^31). No switch or server exceeds 32 bits, and the equation also holds for the sums.
// Digits from 0 to 2^22 - 1 would need 33 bits, and two lanes would not be enough for more than one worker.
inline constexpr std::size_t lanes_of_int64 = 3;
inline constexpr unsigned bits_of_limb = 22;

}  // namespace atp::tensor
