// SPDX-License-Identifier: Apache-2.0
// Tensors over a caller's memory, for each type of element: how its elements become lanes, and sums become elements.
//
//   float32, float64, float16, bfloat16
//       one lane each, of the element as a float32 (a float64 is rounded to it, and the others are float32 exactly),
//       scaled to an integer, or as it is where some element of the fragment does not fit. The float32 sum times
//       `factor`, computed in float64, is rounded once to float32 and from there, where they are narrower, to the
//       element; infinities and NaN survive.
//   int32
//       one plain lane; the sum is modulo 2^32.
//   int64
//       three plain lanes; the sum is modulo 2^64. See below.
//
// Calling order: make one, submit it to a protocol::Worker, destroy it when its event was polled; the memory is the
// caller's and outlives it. `in` and `out` may be the same memory, but may not overlap otherwise; both are aligned as
// their element is. Threads: several workers may drive parts that share no element. Failure: none; what does not fit
// integers is for the protocol to carry as floats.
#pragma once

#include <cstddef>
#include <memory>

#include "numeric/element_type.h"
#include "protocol/tensor.h"

namespace atp::tensor {

// `scale` is the job's; integers know none. `factor` is 1 for a sum and 1/N for an average, and 1 for integers in any
// case. The tensor's size() counts lanes.
[[nodiscard]] std::unique_ptr<protocol::Tensor> make_sum_tensor(numeric::ElementType type, const void* in, void* out,
                                                                std::size_t elements, float scale, double factor);

// Bytes of one worker for all: that one names them as `root`, everybody else says nullptr and contributes zeros. What
// comes is put into `out`, which may be nullptr where it is not wanted. Four bytes a lane, no alignment asked.
[[nodiscard]] std::unique_ptr<protocol::Tensor> make_broadcast_tensor(const void* root, void* out, std::size_t bytes);

// The lanes of an int64: its digits to the base 2^22, balanced around zero,
//
//     value = lane[0] + lane[1] 2^22 + lane[2] 2^44   modulo 2^64,
//     -2^21 <= lane[0], lane[1] < 2^21,  -2^19 <= lane[2] < 2^19.
//
// A job has at most 1,024 = 2^10 workers, so whatever set of them is added in whatever order, every sum of lanes lies
// within [-2^31, 2^31): no switch and no server ever leaves 32 bits, and the equation holds for the sums as well.
// Digits from 0 to 2^22 - 1 would need 33 bits, and two lanes would not be enough for more than one worker.
inline constexpr std::size_t lanes_of_int64 = 3;
inline constexpr unsigned bits_of_limb = 22;

}  // namespace atp::tensor
