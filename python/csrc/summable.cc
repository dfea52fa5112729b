// SPDX-License-Identifier: Apache-2.0
#include "summable.h"

#include <fmt/format.h>

#include <string_view>

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

double factor_of(const c10d::ReduceOp& operation) {
    const auto* const supplement = static_cast<const c10d::NCCLPreMulSumSupplement*>(operation.supplement_.get());
    TORCH_CHECK_VALUE(supplement != nullptr, "atp: PREMUL_SUM needs a factor");
    return supplement->tensor_factor.defined() ? supplement->tensor_factor.item<double>() : supplement->double_factor;
}

comm::Summing summing_of(const c10d::ReduceOp& operation) {
    if (operation == c10d::ReduceOp::AVG) return comm::Reduction::average;
    if (operation == c10d::ReduceOp::PREMUL_SUM) return comm::Summing::scaled_by(factor_of(operation));
    return comm::Reduction::sum;
}

namespace {

// Users know the operation by this name.
std::string_view name_of(const c10d::ReduceOp& operation) {
    switch (operation.op_) {
        case c10d::ReduceOp::SUM: return "SUM";
        case c10d::ReduceOp::AVG: return "AVG";
        case c10d::ReduceOp::PRODUCT: return "PRODUCT";
        case c10d::ReduceOp::MIN: return "MIN";
        case c10d::ReduceOp::MAX: return "MAX";
        case c10d::ReduceOp::BAND: return "BAND";
        case c10d::ReduceOp::BOR: return "BOR";
        case c10d::ReduceOp::BXOR: return "BXOR";
        case c10d::ReduceOp::PREMUL_SUM: return "PREMUL_SUM";
        default: return "unknown operation";
    }
}

bool is_sum(const c10d::ReduceOp& operation) {
    return operation == c10d::ReduceOp::SUM || operation == c10d::ReduceOp::AVG ||
           operation == c10d::ReduceOp::PREMUL_SUM;
}

std::optional<std::string> obstacle_of_memory(const std::vector<at::Tensor>& tensors) {
    if (tensors.empty()) return "no tensors";
    for (const at::Tensor& tensor : tensors) {
        if (!lies_in_memory(tensor)) return "tensor not dense on CPU or CUDA";
        if (tensor.device() != tensors.front().device()) return "tensors on several devices";
        if (tensor.scalar_type() != tensors.front().scalar_type()) return "tensors of several types";
    }
    return std::nullopt;
}

std::optional<numeric::FoldType> fold_type_of(at::ScalarType type) {
    switch (type) {
        case at::kChar: return numeric::FoldType::int8;
        case at::kByte: return numeric::FoldType::uint8;
        case at::kShort: return numeric::FoldType::int16;
        case at::kBool: return numeric::FoldType::boolean;
        default: break;
    }
    const auto element = element_type_of(type);
    return element ? std::optional(numeric::fold_type_of(*element)) : std::nullopt;
}

// An average and a PREMUL_SUM become sums of parts: process_group.cc.
std::optional<numeric::FoldOperation> fold_operation_of(const c10d::ReduceOp& operation, at::ScalarType type) {
    switch (operation.op_) {
        case c10d::ReduceOp::SUM: return numeric::FoldOperation::sum;
        case c10d::ReduceOp::PRODUCT: return numeric::FoldOperation::product;
        case c10d::ReduceOp::MIN: return numeric::FoldOperation::minimum;
        case c10d::ReduceOp::MAX: return numeric::FoldOperation::maximum;
        case c10d::ReduceOp::BAND: return numeric::FoldOperation::bit_and;
        case c10d::ReduceOp::BOR: return numeric::FoldOperation::bit_or;
        case c10d::ReduceOp::BXOR: return numeric::FoldOperation::bit_xor;
        default: break;
    }
    const bool is_part = is_sum(operation) && type == at::kDouble;
    return is_part ? std::optional(numeric::FoldOperation::sum) : std::nullopt;
}

}  // namespace

std::optional<std::string> obstacle(const std::vector<at::Tensor>& tensors, const c10d::ReduceOp& operation) {
    if (const auto why = obstacle_of_memory(tensors)) return why;
    const at::ScalarType type = tensors.front().scalar_type();
    if (!is_sum(operation)) return std::string(name_of(operation));
    if (type == at::kDouble) return "float64, which the network rounds to float32";
    if (!element_type_of(summed_type(type, operation))) return fmt::format("{} tensors", c10::toString(type));
    const bool scales = operation == c10d::ReduceOp::PREMUL_SUM;
    if (scales && at::isIntegralType(type, true)) return fmt::format("PREMUL_SUM of {} tensors", c10::toString(type));
    return std::nullopt;
}

std::optional<Fold> fold_of(const std::vector<at::Tensor>& tensors, const c10d::ReduceOp& operation) {
    if (obstacle_of_memory(tensors)) return std::nullopt;
    const at::ScalarType scalar = tensors.front().scalar_type();
    const auto type = fold_type_of(scalar);
    const auto fold = fold_operation_of(operation, scalar);
    if (!type || !fold || !numeric::can_fold(*type, *fold)) return std::nullopt;
    std::size_t bytes = 0;
    for (const at::Tensor& tensor : tensors) bytes += tensor.nbytes();
    return Fold{*type, *fold, bytes <= comm::longest_fold};
}

std::string reason_of(const std::string& why, const std::optional<Fold>& fold) {
    return fold ? fmt::format("more than {} KiB: {}", comm::longest_fold >> 10U, why) : why;
}

}  // namespace atp::python
