// SPDX-License-Identifier: Apache-2.0
// What the network can carry of PyTorch's tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "numeric/element_type.h"

namespace atp::python {

[[nodiscard]] std::optional<numeric::ElementType> element_type_of(at::ScalarType type);
// The type in which the network sums an average of `type`: int32 for narrower integers, so that their sum fits.
[[nodiscard]] at::ScalarType type_of_average(at::ScalarType type);
// Dense, and where the network can have it, by way of the host if need be.
[[nodiscard]] bool lies_in_memory(const at::Tensor& tensor);

}  // namespace atp::python
