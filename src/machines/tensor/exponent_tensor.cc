// SPDX-License-Identifier: Apache-2.0
#include "tensor/exponent_tensor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <utility>

#include "tensor/span_scales.h"
#include "tensor/values.h"
#include "wire/packet.h"

namespace atp::tensor {
namespace {

std::uint32_t largest_of(const protocol::Tensor& tensor, std::uint64_t first, std::uint64_t count) {
    std::array<float, values_max> values;
    std::uint32_t largest = 0;
    while (count != 0) {
        const std::span some = std::span(values).first(std::min<std::uint64_t>(values_max, count));
        load_values(tensor, first, some);
        largest = std::max(largest, largest_finite(some));
        first += some.size();
        count -= some.size();
    }
    return largest;
}

std::optional<unsigned> exponent_of(std::uint32_t magnitude) {
    constexpr unsigned mantissa_bits = 23;
    if (magnitude == 0) return std::nullopt;
    return magnitude >> mantissa_bits;
}

}  // namespace

ExponentTensor::ExponentTensor(const Tensors& tensors, const Rules& rules, Found found)
    : bits_of_count_(static_cast<unsigned>(std::bit_width(rules.ranks))), found_(std::move(found)) {
    for (const auto& tensor : tensors) {
        for (std::uint64_t first = 0; first < tensor->size(); first += rules.span) {
            spans_.push_back({.tensor = tensor, .first = first, .count = std::min(rules.span, tensor->size() - first)});
        }
    }
    largest_.resize(spans_.size());
}

bool ExponentTensor::ready(std::uint64_t first, std::uint64_t count) const {
    const std::uint64_t last = (first + count - 1) / lanes_of_span();
    for (std::uint64_t at = first / lanes_of_span(); at <= last; ++at) {
        const Span& span = spans_[at];
        if (!span.read && !span.tensor->ready(span.first, span.count)) return false;
    }
    return true;
}

std::optional<unsigned> ExponentTensor::own(std::size_t at) const {
    Span& span = spans_[at];
    if (!std::exchange(span.read, true)) {
        span.own = exponent_of(largest_of(*span.tensor, span.first, span.count));
    }
    return span.own;
}

void ExponentTensor::load(std::uint64_t first, std::span<std::byte> lanes) const {
    for (std::size_t at = 0; at < lanes.size(); at += ATP_LANE_BYTES, ++first) {
        const std::optional<unsigned> exponent = own(first / lanes_of_span());
        const bool has = exponent && *exponent / counts_of_lane() == first % lanes_of_span();
        wire::store_u32(lanes.data() + at, has ? 1U << *exponent % counts_of_lane() * bits_of_count_ : 0U);
    }
}

void ExponentTensor::store(std::uint64_t first, std::span<const std::byte> lanes) {
    for (std::size_t at = 0; at < lanes.size(); at += ATP_LANE_BYTES, ++first, ++stored_) {
        const std::uint32_t counts = wire::load_u32(lanes.data() + at);
        if (counts == 0) continue;
        const unsigned highest = (static_cast<unsigned>(std::bit_width(counts)) - 1) / bits_of_count_;
        const auto exponent = static_cast<unsigned>(first % lanes_of_span()) * counts_of_lane() + highest;
        std::optional<unsigned>& largest = largest_[first / lanes_of_span()];
        largest = std::max(largest.value_or(0), exponent);
    }
    if (stored_ == size()) found_(largest_);
}

}  // namespace atp::tensor
