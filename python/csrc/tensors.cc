// SPDX-License-Identifier: Apache-2.0
#include "tensors.h"

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

}  // namespace atp::python
