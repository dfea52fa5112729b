// SPDX-License-Identifier: Apache-2.0
// Which of PyTorch's tensors the network can sum.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "numeric/element_type.h"

namespace atp::python {

[[nodiscard]] std::optional<numeric::ElementType> element_type_of(at::ScalarType type);
// The type in which the network sums an average of `type`: int32 for narrower integers, so that their sum fits.
[[nodiscard]] at::ScalarType type_of_average(at::ScalarType type);
// True for a dense tensor of the CPU or of CUDA, which the network can read directly or through a copy on the host.
[[nodiscard]] bool lies_in_memory(const at::Tensor& tensor);

}  // namespace atp::python
