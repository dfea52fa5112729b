// SPDX-License-Identifier: Apache-2.0
// Which of PyTorch's tensors the network can sum.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <optional>
#include <string>
#include <vector>

#include "numeric/element_type.h"

namespace atp::python {

[[nodiscard]] std::optional<numeric::ElementType> element_type_of(at::ScalarType type);
// The type in which the network sums an average of `type`: int32 for narrower integers, so that their sum fits.
[[nodiscard]] at::ScalarType type_of_average(at::ScalarType type);
// True for a dense tensor of the CPU or of CUDA, which the network can read directly or through a copy on the host.
[[nodiscard]] bool lies_in_memory(const at::Tensor& tensor);
// The element type in which the network sums `operation` on tensors of `type`.
[[nodiscard]] at::ScalarType summed_type(at::ScalarType type, const c10d::ReduceOp& operation);
// Why the network cannot sum these tensors; empty if it can. Every rank that makes the same call gets the same answer.
[[nodiscard]] std::optional<std::string> obstacle(const std::vector<at::Tensor>& tensors,
                                                  const c10d::ReduceOp& operation);

// True: the caller waits for the work before it does anything else. Older versions of PyTorch do not tell.
template <class CollectiveOptions>
bool is_awaited(const CollectiveOptions& options) {
    if constexpr (requires { options.asyncOp; }) return !options.asyncOp;
    return false;
}

}  // namespace atp::python
