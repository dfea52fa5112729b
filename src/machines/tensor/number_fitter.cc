// SPDX-License-Identifier: Apache-2.0
#include "tensor/number_fitter.h"

#include <optional>
#include <utility>

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
        fitted.before.push_back(std::make_unique<ExponentTensor>(
            whole, [scales, ranks = config_.ranks, form, job_scale](std::optional<unsigned> exponent) {
                scales->begin(first_scale(exponent, ranks, form, job_scale));
            }));
    }
    if (!in_memory) fitted.before.push_back(std::make_unique<VoteTensor>(votes));
    return fitted;
}

}  // namespace atp::tensor
