// SPDX-License-Identifier: Apache-2.0
#include "sim/number_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "numeric/exact_sum.h"
#include "random/random.h"
#include "sim/gradients.h"
#include "tensor/tensors.h"
#include "wire/packet.h"

namespace atp::sim {
namespace {

constexpr double limit_of_int32 = 0x1p31;
// Of sums, by form: b of docs/spec/numbers.md#dynamic-scaling.
int top_bit_of_sum(std::uint8_t form) { return form == ATP_DTYPE_INT8 ? 4 : form == ATP_DTYPE_INT16 ? 12 : 24; }

// A draw that all elements of a group share: 0 to 2^64.
std::uint64_t draw(std::uint64_t key, std::uint64_t what, std::uint64_t group) {
    return mix64(mix64(key, what), group);
}

}  // namespace

NumberTensors::NumberTensors(const Scenario& scenario, const TensorsOf& of)
    : JobTensors(of.workers),
      scenario_(scenario),
      key_(of.key),
      channels_(of.channels),
      workload_(of.workload),
      truths_(of.workload.buckets.size()) {
    for (unsigned rank = 0; rank < of.workers; ++rank) {
        const auto feed = std::make_shared<Feed>();
        ranks_.push_back(
            {.feed = feed,
             .fitter = tensor::NumberFitter(
                 {.form = {.scale = gradient_scale, .scaling = scenario.scaling, .lane_type = scenario.lane_type},
                  .ranks = of.workers,
                  .feed = feed})});
    }
}

void NumberTensors::begin(unsigned rank, unsigned iteration, std::uint32_t bucket) {
    Rank& own = ranks_[rank];
    if (bucket == 0) own.calls.clear();
    Call& call = own.calls.emplace_back(Call{.iteration = iteration});
    const std::uint64_t elements = workload_.buckets[bucket].elements;
    for (std::uint64_t at = 0; at < elements; ++at) call.numbers.push_back(number(rank, iteration, bucket, at));
    float* const memory = call.numbers.data();
    constexpr auto type = numeric::ElementType::float32;
    call.fitted =
        own.fitter.fit(tensor::make_sum_tensor(type, memory, memory, elements, static_cast<float>(gradient_scale), 1),
                       type, {.elements = elements});
    add_parts(rank, call, bucket);
}

// As a communicator of the product shares them out.
void NumberTensors::add_parts(unsigned rank, Call& call, std::uint32_t bucket) {
    const auto add = [&](protocol::Tensor& whole, std::uint64_t first, std::uint64_t size, std::uint32_t purpose) {
        unsigned& next = ranks_[rank].next_channel;
        const unsigned channel = std::exchange(next, (next + 1) % channels_);
        const auto hash = static_cast<std::uint16_t>(draw(key_, purpose, bucket));
        add_part_of(bucket, rank, channel, call.parts.emplace_back(whole, first, size, hash));
    };
    for (const auto& before : call.fitted.before) add(*before, 0, before->size(), 1);
    protocol::Tensor& whole = *call.fitted.tensor;
    const std::uint64_t fragment = scenario_.payload_lanes() * atp_elements_per_word(whole.form());
    const std::uint64_t fragments = (whole.size() + fragment - 1) / fragment;
    const std::uint64_t step = (fragments + channels_ - 1) / channels_ * fragment;
    for (std::uint64_t first = 0; first < whole.size(); first += step) {
        add(whole, first, std::min(step, whole.size() - first), 2);
    }
}

// --------------------------------------------------------------------------------------------------------- The numbers

// The magnitude moves slowly from iteration to iteration, and sometimes leaps. Some spans are zero, some ranks have far
// smaller numbers, and some elements are zero, infinite or no number.
float NumberTensors::number(unsigned rank, unsigned iteration, std::uint32_t bucket, std::uint64_t element) const {
    constexpr std::uint64_t group = 1024;  // elements that have a magnitude of their own
    const std::uint64_t of_bucket = mix64(key_, bucket);
    const std::uint64_t of_call = mix64(of_bucket, iteration);
    const std::uint64_t of_rank = mix64(of_call, 0x100 + rank);
    int exponent = static_cast<int>(draw(of_bucket, 1, element / group) % 12) - 20;
    exponent += static_cast<int>(draw(of_call, 2, 0) % 3);
    const std::uint64_t leap = draw(of_call, 3, 0);
    if (leap % 4 == 0) exponent += static_cast<int>(leap >> 32U) % 30 - 15;
    if (of_rank % 8 == 0) exponent -= 20;
    const std::uint64_t zeros = draw(of_bucket, 4, element / group);
    const std::uint64_t own = draw(of_rank, 5, element);
    if (zeros % 8 == 0 || own % 16 == 0) return 0;
    const std::uint64_t special = draw(of_call, 6, element / 64);
    const bool is_special = share_of_one(special) < scenario_.float_share && (own >> 8U) % 4 == 0;
    if (is_special && (own >> 12U) % 2 == 0) return std::numeric_limits<float>::infinity();
    if (is_special) return (own >> 13U) % 2 == 0 ? 1e30F : std::numeric_limits<float>::quiet_NaN();
    exponent -= static_cast<int>((own >> 16U) % 6);
    const auto digits = static_cast<float>(static_cast<std::int32_t>(own >> 40U) - (1 << 23));
    return std::ldexp(digits, exponent - 23);
}

// ------------------------------------------------------------------------------------------------------------ The sums

std::string NumberTensors::objection(unsigned rank, std::uint32_t bucket) {
    Call& call = ranks_[rank].calls[bucket];
    call.summed = true;
    std::vector<std::uint8_t> scales;
    if (const tensor::SpanScales* const own = call.fitted.scales.get()) {
        for (std::uint64_t cell = 0; cell < own->cells(); ++cell) scales.push_back(own->cell_scale(cell));
    }
    Truth& truth = truths_[bucket];
    if (truth.sums.empty() || truth.iteration != call.iteration) truth = truth_of(call, bucket, scales);
    if (!truth.objection.empty()) return truth.objection;
    if (scales != truth.scales) return "its scales differ from those of another rank";
    for (std::size_t at = 0; at < truth.sums.size(); ++at) {
        const auto sum = std::bit_cast<std::uint32_t>(call.numbers[at]);
        if (sum == truth.sums[at]) continue;
        return fmt::format("tensor {} of iteration {}, element {}: {:#010x} instead of {:#010x}", bucket,
                           call.iteration, at, sum, truth.sums[at]);
    }
    return {};
}

NumberTensors::Truth NumberTensors::truth_of(const Call& call, std::uint32_t bucket,
                                             std::vector<std::uint8_t> scales) const {
    Truth truth{.iteration = call.iteration, .scales = std::move(scales)};
    const tensor::SpanScales* const own = call.fitted.scales.get();
    for (std::uint64_t at = 0; at < call.numbers.size(); ++at) {
        const std::uint8_t scale = own == nullptr ? protocol::scale_of_job : truth.scales[at / own->cell()];
        truth.sums.push_back(sum_of(call.iteration, bucket, at, scale));
    }
    if (own != nullptr) truth.objection = objection_to_scales(truth, bucket, *own);
    return truth;
}

// An element is a sum of integers if every rank has one, otherwise the exact sum of the floats.
std::uint32_t NumberTensors::sum_of(unsigned iteration, std::uint32_t bucket, std::uint64_t element,
                                    std::uint8_t scale) const {
    const double factor = protocol::scale_from(scale, gradient_scale);
    std::int64_t sum = 0;
    bool fits = true;
    numeric::ExactLane exact{};
    std::array<std::byte, ATP_LANE_BYTES> wire;
    for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
        const float own = number(rank, iteration, bucket, element);
        const double scaled = own * factor;
        fits = fits && std::abs(scaled) < limit_of_int32;
        if (fits) sum += std::llrint(scaled);
        wire::store_u32(wire.data(), std::bit_cast<std::uint32_t>(own));
        numeric::exact_add(wire.data(), 1, &exact);
    }
    if (fits) return std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<double>(sum) / factor));
    numeric::exact_round(&exact, 1, wire.data());
    return wire::load_u32(wire.data());
}

// A span that is not summed exactly has a number on some rank that keeps two thirds of its bits, or only zeros.
std::string NumberTensors::objection_to_scales(const Truth& truth, std::uint32_t bucket,
                                               const tensor::SpanScales& scales) const {
    const int top = top_bit_of_sum(scales.form());
    const double least = std::max(std::exp2(top - top / 3) / static_cast<double>(std::bit_ceil(ranks_.size())), 1.0);
    for (std::uint64_t first = 0; first < scales.elements(); first += scales.span()) {
        const std::uint64_t end = std::min(first + scales.span(), scales.elements());
        if (scales.scale(first / scales.span()) == protocol::exact_scale) continue;
        std::uint8_t coarsest = protocol::exact_scale;
        float largest = 0;
        for (std::uint64_t at = first; at < end; ++at) {
            coarsest = std::min(coarsest, truth.scales[at / scales.cell()]);
            for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
                const float own = std::abs(number(rank, truth.iteration, bucket, at));
                if (std::isfinite(own)) largest = std::max(largest, own);
            }
        }
        if (largest == 0 || largest * protocol::scale_from(coarsest, gradient_scale) >= least) continue;
        return fmt::format("tensor {} of iteration {}: the span at {} has the scale {}, too coarse for {}", bucket,
                           truth.iteration, first, coarsest, largest);
    }
    return {};
}

double NumberTensors::share_summed(unsigned rank) const {
    const std::deque<Call>& calls = ranks_[rank].calls;
    const auto summed = std::ranges::count_if(calls, &Call::summed);
    return static_cast<double>(summed) / static_cast<double>(workload_.buckets.size());
}

}  // namespace atp::sim
