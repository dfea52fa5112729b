// SPDX-License-Identifier: Apache-2.0
#include "summable.h"

#include <fmt/format.h>

namespace atp::python {

using numeric::ElementType;

std::optional<ElementType> element_type_of(at::ScalarType type) {
    switch (type) {
        case at::kFloat: return ElementType::float32;
        case at::kDouble: return ElementType::float64;
        case at::kHalf: return ElementType::float16;
        case at::kBFloat16: return ElementType::bfloat16;
        case at::kInt: return ElementType::int32;
        case at::kLong: return ElementType::int64;
        default: return std::nullopt;
    }
}

at::ScalarType type_of_average(at::ScalarType type) {
    const bool narrow = type == at::kByte || type == at::kChar || type == at::kShort;
    return narrow ? at::kInt : type;
}

bool lies_in_memory(const at::Tensor& tensor) {
    return tensor.layout() == at::kStrided && (tensor.is_cpu() || tensor.is_cuda());
}

at::ScalarType summed_type(at::ScalarType type, const c10d::ReduceOp& operation) {
    return operation == c10d::ReduceOp::AVG ? type_of_average(type) : type;
}

std::optional<std::string> obstacle(const std::vector<at::Tensor>& tensors, const c10d::ReduceOp& operation) {
    if (tensors.empty()) return "no tensors";
    const at::ScalarType type = tensors.front().scalar_type();
    if (operation != c10d::ReduceOp::AVG && operation != c10d::ReduceOp::SUM) return "operation other than SUM and AVG";
    if (type == at::kDouble) return "float64, which the network rounds to float32";
    if (!element_type_of(summed_type(type, operation))) return fmt::format("{} tensors", c10::toString(type));
    for (const at::Tensor& tensor : tensors) {
        if (!lies_in_memory(tensor)) return "tensor not dense on CPU or CUDA";
        if (tensor.device() != tensors.front().device()) return "tensors on several devices";
        if (tensor.scalar_type() != type) return "tensors of several types";
    }
    return std::nullopt;
}

}  // namespace atp::python
