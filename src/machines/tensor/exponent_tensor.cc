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

// As magnitude_bits().
std::uint32_t largest_finite(std::span<const float> values) {
    const std::uint32_t of_all = magnitude_bits(numeric::largest_magnitude(values.data(), values.size()));
    if (of_all < infinity_bits) return of_all;
    std::uint32_t largest = 0;
    for (const float value : values) {
        const std::uint32_t bits = magnitude_bits(value);
        largest = std::max(largest, bits < infinity_bits ? bits : 0U);
    }
    return largest;
}

std::uint32_t largest_finite(const protocol::Tensor& tensor) {
    std::array<float, values_max> values;
    std::uint32_t largest = 0;
    for (std::uint64_t first = 0; first < tensor.size(); first += values_max) {
        const std::span some = std::span(values).first(std::min<std::uint64_t>(values_max, tensor.size() - first));
        load_values(tensor, first, some);
        largest = std::max(largest, largest_finite(some));
    }
    return largest;
}

std::optional<unsigned> exponent_of(std::uint32_t magnitude) {
    constexpr unsigned mantissa_bits = 23;
    if (magnitude == 0) return std::nullopt;
    return magnitude >> mantissa_bits;
}

}  // namespace

bool ExponentTensor::ready(std::uint64_t /*first*/, std::uint64_t /*count*/) const {
    return std::ranges::all_of(tensors_, [](const auto& tensor) { return tensor->ready(0, tensor->size()); });
}

void ExponentTensor::load(std::uint64_t first, std::span<std::byte> lanes) const {
    if (!scanned_) {
        std::uint32_t largest = 0;
        for (const auto& tensor : tensors_) largest = std::max(largest, largest_finite(*tensor));
        own_ = exponent_of(largest);
        scanned_ = true;
    }
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
