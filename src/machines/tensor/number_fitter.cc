// SPDX-License-Identifier: Apache-2.0
#include "tensor/number_fitter.h"

#include <optional>
#include <utility>

#include "tensor/common_scale_tensor.h"
#include "tensor/exponent_tensor.h"
#include "tensor/span_votes.h"
#include "tensor/vote_tensor.h"

namespace atp::tensor {

NumberFitter::Fitted NumberFitter::fit(std::unique_ptr<protocol::Tensor> tensor, numeric::ElementType type,
                                       const OperationKind& kind, bool in_memory) {
    const std::uint8_t form = config_.form.form_of(type);
    const double job_scale = config_.form.scale;
    const std::shared_ptr<protocol::Tensor> whole = std::move(tensor);
    if (config_.form.scaling == Scaling::fixed) {
        return {.tensor = std::make_unique<FittedTensor>(whole, FittedTensor::Numbers{.form = form,
                                                                                      .job_scale = job_scale,
                                                                                      .scales = nullptr,
                                                                                      .votes = nullptr,
                                                                                      .in_memory = false,
                                                                                      .report = config_.report})};
    }
    if (whole->size() <= config_.exact) {
        const auto exact = std::make_shared<SpanScales>(whole->size(), ATP_DTYPE_INT32, nullptr, config_.feed);
        exact->begin(protocol::exact_scale);
        exact->decide(0, true);
        return {.tensor = std::make_unique<ExactTensor>(whole), .before = {}, .scales = exact};
    }
    const auto reference = sequence_.add(kind);
    const auto scales = std::make_shared<SpanScales>(
        whole->size(), form, reference ? scales_[*reference % scales_.size()] : nullptr, config_.feed);
    scales_[(sequence_.calls() - 1) % scales_.size()] = scales;
    const auto votes = std::make_shared<SpanVotes>(whole, scales, config_.ranks, form);
    Fitted fitted{.tensor = std::make_unique<FittedTensor>(whole, FittedTensor::Numbers{.form = form,
                                                                                        .job_scale = job_scale,
                                                                                        .scales = scales,
                                                                                        .votes = votes,
                                                                                        .in_memory = in_memory,
                                                                                        .report = config_.report}),
                  .before = {},
                  .scales = scales};
    if (!reference) {
        fitted.before.push_back(exponents_of(whole, scales, form));
    }
    if (!in_memory) fitted.before.push_back(std::make_unique<VoteTensor>(votes));
    return fitted;
}

NumberFitter::Fitted NumberFitter::fit_owned(std::unique_ptr<protocol::Tensor> tensor) const {
    const std::shared_ptr<protocol::Tensor> whole = std::move(tensor);
    const auto scale = std::make_shared<SpanScales>(1, ATP_DTYPE_INT32, nullptr, config_.feed);
    Fitted fitted{.tensor = std::make_unique<CommonScaleTensor>(whole, scale)};
    fitted.before.push_back(exponents_of(whole, scale, ATP_DTYPE_INT32));
    return fitted;
}

std::unique_ptr<protocol::Tensor> NumberFitter::exponents_of(std::shared_ptr<const protocol::Tensor> whole,
                                                             std::shared_ptr<SpanScales> scales,
                                                             std::uint8_t form) const {
    return std::make_unique<ExponentTensor>(
        std::move(whole),
        [scales = std::move(scales), ranks = config_.ranks, form, job_scale = config_.form.scale](
            std::optional<unsigned> exponent) { scales->begin(first_scale(exponent, ranks, form, job_scale)); });
}

}  // namespace atp::tensor
