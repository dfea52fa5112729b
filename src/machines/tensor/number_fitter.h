// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "numeric/element_type.h"
#include "protocol/tensor.h"
#include "protocol/waker.h"
#include "tensor/dealt_tensor.h"
#include "tensor/exponent_tensor.h"
#include "tensor/fitted_tensor.h"
#include "tensor/number_form.h"
#include "tensor/operation_seal.h"
#include "tensor/reference_calls.h"
#include "tensor/sealed_tensor.h"
#include "tensor/span_scales.h"

namespace atp::tensor {

// Elements up to which a tensor with dynamic scaling is summed exactly: so few gain less from a switch that adds them
// than a vote about their scale would cost.
inline constexpr std::uint64_t exact_elements = 256;

// Gives the float tensors of a communicator their form and, with dynamic scaling, scales that follow from earlier
// operations. All ranks call equal operations in equal order, so they propose equal scales without a message. A vote
// about each span then decides whether its numbers are large enough for the proposal. A small tensor needs none of
// this.
//
// Ownership: owns the scales of the last operations; shares `feed`.
// Calling order: fit() for each operation with scaled numbers, in order. Threads: under the caller's lock.
// Failure: none.
class NumberFitter {
  public:
    struct Config {
        NumberForm form{};
        std::uint32_t ranks = 1;
        std::shared_ptr<protocol::Waker> feed{};
        std::function<void(const NumberTally&)> report{};  // of each tensor; on any thread
        std::uint64_t exact = exact_elements;              // tensors up to this size are summed exactly
    };
    struct Fitted {
        std::unique_ptr<protocol::Tensor> tensor;
        // To be summed before the tensor, in this order; it is not ready until then.
        std::vector<std::unique_ptr<protocol::Tensor>> before{};
        // To be sent after it: not ready until sums of it are stored.
        std::unique_ptr<protocol::Tensor> after{};
        // Of the tensor, all known once it is summed; nullptr: the scale is fixed, or the parts have owners.
        std::shared_ptr<const SpanScales> scales{};
        SealedTensor* sealed = nullptr;  // `tensor`, if a seal sees its words
    };

    explicit NumberFitter(Config config) : config_(std::move(config)) {}

    // `tensor` is not plain and not empty. Tensors of equal kind have equal sizes and types. `in_memory`: all ranks
    // share memory, and vote there.
    [[nodiscard]] Fitted fit(std::unique_ptr<protocol::Tensor> tensor, numeric::ElementType type,
                             const OperationKind& kind, bool in_memory = false);

    // The same for blocks of numbers with an owner each. Owners alone have the sums, so they tell the other ranks how
    // large these are, after the tensor. `rules`: for fragments of form_of().
    [[nodiscard]] Fitted fit_dealt(std::vector<DealtTensor::Block> blocks, const DealtTensor::Rules& rules,
                                   numeric::ElementType type, const OperationKind& kind);

    // Of a sealed operation. Its numbers are sent as int32, at scales that suit those that the ranks have now: no
    // finite number lacks an integer, and no vote about them is needed. `words`: of a plain tensor.
    [[nodiscard]] Fitted fit_sealed(std::unique_ptr<protocol::Tensor> tensor, const SealedWords& words,
                                    const std::shared_ptr<OperationSeal>& seal) const;

    // Of a tensor with so many elements.
    [[nodiscard]] std::uint8_t form_of(numeric::ElementType type, std::uint64_t elements) const {
        return is_exact(elements) ? std::uint8_t{ATP_DTYPE_INT32} : config_.form.form_of(type);
    }

  private:
    using Scales = std::vector<std::shared_ptr<SpanScales>>;  // of each block; of a tensor without owners one
    using Shared = std::shared_ptr<protocol::Tensor>;

    [[nodiscard]] bool is_exact(std::uint64_t elements) const {
        return config_.form.scaling == Scaling::dynamic && elements <= config_.exact;
    }
    [[nodiscard]] std::unique_ptr<protocol::Tensor> with_fixed_scale(Shared tensor, std::uint8_t form) const;
    // Begins each span of `scales` with the scale that suits the largest element of it on all ranks. `decides`: and
    // accepts it.
    [[nodiscard]] std::unique_ptr<protocol::Tensor> exponents_of(const ExponentTensor::Tensors& tensors, Scales scales,
                                                                 bool decides = false) const;
    [[nodiscard]] FittedTensor::Numbers numbers_of(const Shared& tensor, std::uint8_t form,
                                                   const std::shared_ptr<SpanScales>& scales) const;
    // The scales of this operation, of which later ones have the reference.
    [[nodiscard]] Scales next_scales(const OperationKind& kind, const std::vector<Shared>& tensors, std::uint8_t form,
                                     numeric::ElementType type);

    Config config_;
    ReferenceCalls sequence_;
    std::array<Scales, ReferenceCalls::most_calls> scales_{};  // by number of the call
};

}  // namespace atp::tensor
