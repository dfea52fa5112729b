// SPDX-License-Identifier: Apache-2.0
#include "tensor/exponent_tensor.h"

#include <algorithm>
#include <cstddef>

#include "wire/packet.h"

namespace atp::tensor {

void ExponentTensor::load(std::uint64_t first, std::span<std::byte> lanes) const {
    const std::optional<unsigned> own = source_->exponent();
    std::ranges::fill(lanes, std::byte{0});
    const std::uint64_t count = lanes.size() / ATP_LANE_BYTES;
    if (own && *own >= first && *own < first + count) {
        wire::store_u32(lanes.data() + (*own - first) * ATP_LANE_BYTES, 1);
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
