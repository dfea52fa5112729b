// SPDX-License-Identifier: Apache-2.0
#include "tensor/span_votes.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "tensor/values.h"

namespace atp::tensor {
namespace {

constexpr std::uint32_t unread = ~0U;

constexpr std::size_t vote_block = 256;
static_assert(vote_block <= values_max);

}  // namespace

SpanVotes::SpanVotes(std::shared_ptr<const protocol::Tensor> whole, std::shared_ptr<SpanScales> scales,
                     const Rules& rules)
    : whole_(std::move(whole)),
      scales_(std::move(scales)),
      rules_(rules),
      own_((whole_->size() + rules.span - 1) / rules.span) {
    for (std::atomic<std::uint32_t>& vote : own_) vote.store(unread, std::memory_order_relaxed);
}

bool SpanVotes::ready(std::uint64_t span) const {
    if (own_[span] != unread) return true;
    const std::uint64_t first = span * rules_.span;
    return whole_->ready(first, std::min(rules_.span, whole_->size() - first)) && scales_->ready(span);
}

std::uint32_t SpanVotes::own(std::uint64_t span) {
    std::atomic<std::uint32_t>& vote = own_[span];
    if (vote == unread) {
        const std::scoped_lock lock(reading_);
        if (vote == unread) vote = read(span);
    }
    return vote;
}

// Usually the first block decides. Infinities and NaN say nothing of the numbers beside them (H52).
std::uint32_t SpanVotes::read(std::uint64_t span) const {
    const std::uint32_t least = least_magnitude(scales_->coarsest(span), rules_.ranks, scales_->bits());
    const std::uint64_t end = std::min((span + 1) * rules_.span, whole_->size());
    std::array<float, vote_block> values;
    std::uint32_t largest = 0;
    for (std::uint64_t first = span * rules_.span; first < end; first += vote_block) {
        const std::size_t count = std::min<std::uint64_t>(vote_block, end - first);
        load_values(*whole_, first, std::span(values).first(count));
        largest = std::max(largest, largest_finite(std::span(values).first(count)));
        if (largest >= least) return large_enough;
    }
    return largest == 0 ? 0 : too_small;
}

bool SpanVotes::accepts(std::uint64_t span) {
    if (!ready(span) || own(span) != large_enough) return false;
    decide(span, large_enough);
    return true;
}

void SpanVotes::decide(std::uint64_t span, std::uint32_t sum) {
    scales_->decide(span, sum == 0 || sum >= large_enough);
}

}  // namespace atp::tensor
