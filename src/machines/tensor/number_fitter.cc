// SPDX-License-Identifier: Apache-2.0
#include "tensor/number_fitter.h"

#include <optional>
#include <utility>

#include "tensor/common_scale_tensor.h"
#include "tensor/exponent_source.h"
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
    if (whole->size() <= config_.exact) return fit_exact(whole);
    const auto scales = next_scales(kind, whole->size(), form, type);
    const auto votes =
        std::make_shared<SpanVotes>(whole, scales, SpanVotes::Rules{.ranks = config_.ranks, .span = scales->span()});
    Fitted fitted{.tensor = std::make_unique<FittedTensor>(whole, FittedTensor::Numbers{.form = form,
                                                                                        .job_scale = job_scale,
                                                                                        .scales = scales,
                                                                                        .votes = votes,
                                                                                        .in_memory = in_memory,
                                                                                        .report = config_.report}),
                  .scales = scales};
    if (!scales->has_reference()) fitted.before.push_back(exponents_of(whole, scales));
    if (!in_memory) fitted.before.push_back(std::make_unique<VoteTensor>(votes));
    return fitted;
}

NumberFitter::Fitted NumberFitter::fit_exact(std::shared_ptr<protocol::Tensor> whole) const {
    const auto scales = std::make_shared<SpanScales>(whole->size(), ATP_DTYPE_INT32, nullptr, config_.feed);
    scales->begin(protocol::exact_scale);
    scales->decide(0, true);
    return {.tensor = std::make_unique<CommonScaleTensor>(std::move(whole), scales), .scales = scales};
}

// All numbers that are looked at are there: the scale that follows needs no vote.
NumberFitter::Fitted NumberFitter::fit_owned(std::unique_ptr<protocol::Tensor> tensor, const OperationKind& kind) {
    const std::shared_ptr<protocol::Tensor> whole = std::move(tensor);
    if (kind.elements <= config_.exact) return fit_exact(whole);
    const auto scale = next_scales(kind, 1, ATP_DTYPE_INT32, numeric::ElementType::float32);
    const auto settle = [scale, ranks = config_.ranks](std::optional<unsigned> exponent) {
        scale->record(0, magnitude_of_sum(exponent, ranks));
        scale->settle(0, 1);
    };
    Fitted fitted;
    if (!scale->has_reference()) {
        fitted.before.push_back(std::make_unique<ExponentTensor>(
            std::make_shared<ScannedExponent>(whole),
            [=, ranks = config_.ranks, job_scale = config_.form.scale](std::optional<unsigned> exponent) {
                scale->begin(first_scale(exponent, ranks, scale->bits(), job_scale));
                scale->decide(0, true);
                settle(exponent);
            }));
        fitted.tensor = std::make_unique<CommonScaleTensor>(whole, scale);
        return fitted;
    }
    const auto votes =
        std::make_shared<SpanVotes>(whole, scale, SpanVotes::Rules{.ranks = config_.ranks, .span = whole->size()});
    const auto exponent = std::make_shared<SeenExponent>(whole, config_.feed);
    fitted.before.push_back(std::make_unique<VoteTensor>(votes));
    fitted.tensor = std::make_unique<CommonScaleTensor>(
        whole, scale, CommonScaleTensor::Follows{.votes = votes, .exponent = exponent});
    fitted.after = std::make_unique<ExponentTensor>(exponent, settle);
    return fitted;
}

std::shared_ptr<SpanScales> NumberFitter::next_scales(const OperationKind& kind, std::uint64_t elements,
                                                      std::uint8_t form, numeric::ElementType type) {
    const auto reference = sequence_.add(kind);
    auto scales = std::make_shared<SpanScales>(
        elements, form, reference ? scales_[*reference % scales_.size()] : nullptr, config_.feed, type);
    scales_[(sequence_.calls() - 1) % scales_.size()] = scales;
    return scales;
}

std::unique_ptr<protocol::Tensor> NumberFitter::exponents_of(std::shared_ptr<const protocol::Tensor> whole,
                                                             std::shared_ptr<SpanScales> scales) const {
    return std::make_unique<ExponentTensor>(std::make_shared<ScannedExponent>(std::move(whole)),
                                            [scales = std::move(scales), ranks = config_.ranks,
                                             job_scale = config_.form.scale](std::optional<unsigned> exponent) {
                                                scales->begin(first_scale(exponent, ranks, scales->bits(), job_scale));
                                            });
}

}  // namespace atp::tensor
