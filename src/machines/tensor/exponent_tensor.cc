// SPDX-License-Identifier: Apache-2.0
#include "tensor/exponent_tensor.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "numeric/lanes32_worker.h"
#include "tensor/span_scales.h"
#include "tensor/values.h"
#include "wire/packet.h"

namespace atp::tensor {
namespace {

constexpr unsigned mantissa_bits = 23;

std::uint32_t largest_finite(const float* values, std::size_t count) {
    std::uint32_t largest = 0;
    for (std::size_t at = 0; at < count; ++at) {
        const std::uint32_t bits = magnitude_bits(values[at]);
        largest = std::max(largest, bits < infinity_bits ? bits : 0U);
    }
    return largest;
}

}  // namespace

std::optional<unsigned> ExponentTensor::own_exponent() const {
    std::array<float, values_max> values;
    std::uint32_t largest = 0;
    for (std::uint64_t first = 0; first < whole_->size(); first += values_max) {
        const std::size_t count = std::min<std::uint64_t>(values_max, whole_->size() - first);
        load_values(*whole_, first, std::span(values).first(count));
        const std::uint32_t of_all = magnitude_bits(numeric::largest_magnitude(values.data(), count));
        largest = std::max(largest, of_all < infinity_bits ? of_all : largest_finite(values.data(), count));
    }
    if (largest == 0) return std::nullopt;
    return largest >> mantissa_bits;
}

void ExponentTensor::load(std::uint64_t first, std::span<std::byte> lanes) const {
    if (!scanned_) own_ = own_exponent();
    scanned_ = true;
    std::ranges::fill(lanes, std::byte{0});
    const std::uint64_t count = lanes.size() / ATP_LANE_BYTES;
    if (own_ && *own_ >= first && *own_ < first + count) {
        wire::store_u32(lanes.data() + (*own_ - first) * ATP_LANE_BYTES, 1);
    }
}

void ExponentTensor::store(std::uint64_t first, std::span<const std::byte> lanes) {
    const auto count = static_cast<unsigned>(lanes.size() / ATP_LANE_BYTES);
    for (unsigned at = 0; at < count; ++at) {
        const unsigned exponent = static_cast<unsigned>(first) + at;
        if (wire::load_u32(lanes.data() + at * ATP_LANE_BYTES) == 0) continue;
        largest_ = std::max(largest_.value_or(0), exponent);
    }
    stored_ += count;
    if (stored_ == exponents) found_(largest_);
}

}  // namespace atp::tensor
