// SPDX-License-Identifier: Apache-2.0
// Keys of a group, with the interface of a parameter server.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "capi/raised_errors.h"
#include "process_group.h"
#include "summable.h"

namespace atp::python {
namespace {

[[noreturn]] void fail(const Error& error) { C10_THROW_ERROR(DistBackendError, capi::message_of(error)); }

numeric::ElementType require_element_type(const at::Tensor& tensor) {
    const auto type = element_type_of(tensor.scalar_type());
    TORCH_CHECK_TYPE(type.has_value(),
                     "atp: push and pull accept floats of 16 to 64 bits and integers of 32 and 64 bits, not ",
                     tensor.scalar_type());
    TORCH_CHECK_TYPE(lies_in_memory(tensor) && tensor.is_cpu(), "atp: push and pull accept dense CPU tensors only");
    return *type;
}

std::size_t elements_of(const at::Tensor& tensor) { return static_cast<std::size_t>(tensor.numel()); }

}  // namespace

void ProcessGroupAtp::push(std::uint64_t key, const at::Tensor& tensor) {
    const numeric::ElementType type = require_element_type(tensor);
    const at::NoGradGuard no_grad;
    const at::Tensor memory = tensor.contiguous().resolve_neg();
    const auto pushed =
        require_communicator()->push(key, memory.const_data_ptr(), elements_of(memory), type, deadline_of({}));
    if (!pushed) fail(pushed.error());
}

void ProcessGroupAtp::pull(std::uint64_t key, const at::Tensor& tensor) {
    const numeric::ElementType type = require_element_type(tensor);
    const at::NoGradGuard no_grad;
    const at::Tensor memory = at::empty(tensor.sizes(), tensor.options().requires_grad(false));
    const auto pulled = require_communicator()->pull(key, memory.data_ptr(), elements_of(memory), type);
    if (!pulled) fail(pulled.error());
    tensor.copy_(memory);
}

}  // namespace atp::python
