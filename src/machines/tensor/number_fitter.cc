// SPDX-License-Identifier: Apache-2.0
#include "tensor/number_fitter.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tensor/exact_tensor.h"
#include "tensor/span_votes.h"
#include "tensor/sum_exponents.h"
#include "tensor/tensor_group.h"
#include "tensor/vote_tensor.h"

namespace atp::tensor {
namespace {

using Scales = std::vector<std::shared_ptr<SpanScales>>;

bool lack_reference(const Scales& scales) {
    return std::ranges::none_of(scales, [](const auto& own) { return own->has_reference(); });
}

// Calls of equal kind may differ in the sizes of their blocks, if hashes are equal.
bool have_sizes(const Scales& scales, const std::vector<std::shared_ptr<protocol::Tensor>>& tensors) {
    return std::ranges::equal(scales, tensors,
                              [](const auto& own, const auto& tensor) { return own->elements() == tensor->size(); });
}

// A span of zeros has the scale of the span with the largest numbers. `decides`: no vote follows.
void begin_spans(const Scales& scales, const ExponentTensor::Exponents& exponents, std::uint32_t ranks,
                 double job_scale, bool decides) {
    const std::optional<unsigned> largest = *std::ranges::max_element(exponents);
    auto exponent = exponents.begin();
    for (const auto& own : scales) {
        const int bits = bits_of_first_sum(own->form());
        for (std::uint64_t span = 0; span < own->count(); ++span, ++exponent) {
            own->begin(span, first_scale(*exponent ? *exponent : largest, ranks, bits, job_scale));
            if (decides) own->decide(span, true);
        }
    }
}

}  // namespace

NumberFitter::Fitted NumberFitter::fit(std::unique_ptr<protocol::Tensor> tensor, numeric::ElementType type,
                                       const OperationKind& kind, bool in_memory) {
    const std::uint8_t form = form_of(type, tensor->size());
    const Shared whole = std::move(tensor);
    if (config_.form.scaling == Scaling::fixed) return {.tensor = with_fixed_scale(whole, form)};
    if (is_exact(whole->size())) {
        const auto scales = std::make_shared<SpanScales>(whole->size(), form, nullptr, config_.feed);
        scales->begin(protocol::exact_scale);
        scales->decide(0, true);
        return {.tensor = std::make_unique<ExactTensor>(whole), .scales = scales};
    }
    const Scales scales = next_scales(kind, {whole}, form, type);
    FittedTensor::Numbers numbers = numbers_of(whole, form, scales.front());
    numbers.in_memory = in_memory;
    numbers.in_packets = !in_memory;
    Fitted fitted{.tensor = std::make_unique<FittedTensor>(whole, numbers), .scales = scales.front()};
    if (lack_reference(scales)) fitted.before.push_back(exponents_of({whole}, scales));
    if (!in_memory) fitted.before.push_back(std::make_unique<VoteTensor>(numbers.votes));
    return fitted;
}

NumberFitter::Fitted NumberFitter::fit_dealt(std::vector<DealtTensor::Block> blocks, const DealtTensor::Rules& rules,
                                             numeric::ElementType type, const OperationKind& kind) {
    const std::uint8_t form = form_of(type, kind.elements);
    if (is_exact(kind.elements)) {
        return {.tensor = std::make_unique<ExactTensor>(std::make_unique<DealtTensor>(std::move(blocks), rules))};
    }
    if (config_.form.scaling == Scaling::fixed) {
        for (auto& block : blocks) block.tensor = with_fixed_scale(std::move(block.tensor), form);
        return {.tensor = std::make_unique<DealtTensor>(std::move(blocks), rules)};
    }
    std::vector<Shared> tensors;
    for (auto& block : blocks) tensors.emplace_back(std::move(block.tensor));
    const Scales scales = next_scales(kind, tensors, form, type);
    std::vector<std::unique_ptr<protocol::Tensor>> votes;
    std::vector<DealtTensor::Block> exponents;
    for (std::size_t at = 0; at < blocks.size(); ++at) {
        DealtTensor::Block& block = blocks[at];
        FittedTensor::Numbers numbers = numbers_of(tensors[at], form, scales[at]);
        numbers.in_packets = !rules.in_memory;
        block.tensor = std::make_unique<FittedTensor>(tensors[at], numbers);
        votes.push_back(std::make_unique<VoteTensor>(numbers.votes));
        exponents.push_back(
            {.tensor = std::make_unique<SumExponents>(scales[at]), .owner = block.owner, .member = block.member});
    }
    DealtTensor::Rules after = rules;
    after.gathers = true;
    after.longest = std::max<std::uint64_t>(rules.longest / atp_elements_per_word(form), 1);
    Fitted fitted;
    if (lack_reference(scales)) fitted.before.push_back(exponents_of({tensors.begin(), tensors.end()}, scales));
    fitted.before.push_back(std::make_unique<TensorGroup>(std::move(votes)));
    fitted.tensor = std::make_unique<DealtTensor>(std::move(blocks), rules);
    fitted.after = std::make_unique<DealtTensor>(std::move(exponents), after);
    return fitted;
}

NumberFitter::Fitted NumberFitter::fit_sealed(std::unique_ptr<protocol::Tensor> tensor, const SealedWords& words,
                                              const std::shared_ptr<OperationSeal>& seal) const {
    const Shared whole = std::move(tensor);
    SealedTensor::Inner inner{.tensor = whole, .whole = whole, .words = words, .job_scale = config_.form.scale};
    Fitted fitted;
    if (!whole->plain() && config_.form.scaling == Scaling::fixed) {
        inner.tensor = with_fixed_scale(whole, ATP_DTYPE_INT32);
    } else if (!whole->plain()) {
        const auto scales = std::make_shared<SpanScales>(whole->size(), ATP_DTYPE_INT32, nullptr, config_.feed);
        FittedTensor::Numbers numbers{.job_scale = config_.form.scale, .scales = scales};
        numbers.report = config_.report;
        inner.tensor = std::make_shared<FittedTensor>(whole, numbers);
        SealedTensor::Inner exponents{.tensor = exponents_of({whole}, {scales}, true)};
        exponents.words.kind = crypto::WordKind::natural;
        fitted.before.push_back(std::make_unique<SealedTensor>(std::move(exponents), seal));
        fitted.scales = scales;
    }
    auto sealed = std::make_unique<SealedTensor>(std::move(inner), seal);
    fitted.sealed = sealed.get();
    fitted.tensor = std::move(sealed);
    return fitted;
}

std::unique_ptr<protocol::Tensor> NumberFitter::with_fixed_scale(Shared tensor, std::uint8_t form) const {
    return std::make_unique<FittedTensor>(std::move(tensor), FittedTensor::Numbers{.form = form,
                                                                                   .job_scale = config_.form.scale,
                                                                                   .scales = nullptr,
                                                                                   .votes = nullptr,
                                                                                   .in_memory = false,
                                                                                   .in_packets = true,
                                                                                   .report = config_.report});
}

FittedTensor::Numbers NumberFitter::numbers_of(const Shared& tensor, std::uint8_t form,
                                               const std::shared_ptr<SpanScales>& scales) const {
    const SpanVotes::Rules rules{.ranks = config_.ranks, .span = scales->span()};
    return {.form = form,
            .job_scale = config_.form.scale,
            .scales = scales,
            .votes = std::make_shared<SpanVotes>(tensor, scales, rules),
            .in_memory = false,
            .in_packets = true,
            .report = config_.report};
}

NumberFitter::Scales NumberFitter::next_scales(const OperationKind& kind, const std::vector<Shared>& tensors,
                                               std::uint8_t form, numeric::ElementType type) {
    const auto reference = sequence_.add(kind);
    const Scales* const earlier = reference ? &scales_[*reference % scales_.size()] : nullptr;
    const bool follows = earlier != nullptr && have_sizes(*earlier, tensors);
    Scales scales;
    for (std::size_t at = 0; at < tensors.size(); ++at) {
        scales.push_back(std::make_shared<SpanScales>(tensors[at]->size(), form, follows ? (*earlier)[at] : nullptr,
                                                      config_.feed, type));
    }
    scales_[(sequence_.calls() - 1) % scales_.size()] = scales;
    return scales;
}

std::unique_ptr<protocol::Tensor> NumberFitter::exponents_of(const ExponentTensor::Tensors& tensors, Scales scales,
                                                             bool decides) const {
    const ExponentTensor::Rules rules{.ranks = config_.ranks, .span = scales.front()->span()};
    return std::make_unique<ExponentTensor>(
        tensors, rules,
        [scales = std::move(scales), ranks = config_.ranks, job_scale = config_.form.scale, decides](
            const ExponentTensor::Exponents& exponents) { begin_spans(scales, exponents, ranks, job_scale, decides); });
}

}  // namespace atp::tensor
