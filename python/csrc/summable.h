// SPDX-License-Identifier: Apache-2.0
// Which of PyTorch's tensors the network can sum, and which the ranks can fold.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "numeric/element_type.h"
#include "numeric/fold.h"

namespace atp::python {

[[nodiscard]] std::optional<numeric::ElementType> element_type_of(at::ScalarType type);
// The type in which the network sums an average of `type`: int32 for narrower integers, so that their sum fits.
[[nodiscard]] at::ScalarType type_of_average(at::ScalarType type);
// True for a dense tensor of the CPU or of CUDA, which the network can read directly or through a copy on the host.
[[nodiscard]] bool lies_in_memory(const at::Tensor& tensor);
// The element type in which the network sums `operation` on tensors of `type`.
[[nodiscard]] at::ScalarType summed_type(at::ScalarType type, const c10d::ReduceOp& operation);
// What the network computes for SUM, AVG or PREMUL_SUM.
[[nodiscard]] comm::Summing summing_of(const c10d::ReduceOp& operation);
// The factor of PREMUL_SUM. Throws c10::Error if the operation has none.
[[nodiscard]] double factor_of(const c10d::ReduceOp& operation);
// Why the network cannot sum these tensors; empty if it can. Every rank that makes the same call gets the same answer.
[[nodiscard]] std::optional<std::string> obstacle(const std::vector<at::Tensor>& tensors,
                                                  const c10d::ReduceOp& operation);

struct Fold {
    numeric::FoldType type;
    numeric::FoldOperation operation;
    bool fits;  // false: the tensors have more than comm::longest_fold bytes
};
// How the ranks fold tensors that the network cannot sum; nullopt: they cannot. Every rank that makes the same call
// gets the same answer.
[[nodiscard]] std::optional<Fold> fold_of(const std::vector<at::Tensor>& tensors, const c10d::ReduceOp& operation);
// Why such tensors go to the fallback, if `why` is what keeps the network from summing them.
[[nodiscard]] std::string reason_of(const std::string& why, const std::optional<Fold>& fold);

// True: the caller waits for the work before it does anything else. Older versions of PyTorch do not tell.
template <class CollectiveOptions>
bool is_awaited(const CollectiveOptions& options) {
    if constexpr (requires { options.asyncOp; }) return !options.asyncOp;
    return false;
}

}  // namespace atp::python
