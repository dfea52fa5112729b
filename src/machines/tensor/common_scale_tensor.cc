// SPDX-License-Identifier: Apache-2.0
#include "tensor/common_scale_tensor.h"

#include "numeric/lanes32_worker.h"
#include "tensor/values.h"

namespace atp::tensor {

// Usually the own vote suffices, so no worker waits for the sum of the votes.
bool CommonScaleTensor::decided() const {
    if (scale_->scale(0) != protocol::scale_of_job) return true;
    return (follows_.votes != nullptr && follows_.votes->accepts(0)) || scale_->decided(0);
}

bool CommonScaleTensor::load_integers(std::uint64_t first, std::span<std::byte> lanes) const {
    see(first, lanes.size() / ATP_LANE_BYTES);
    if (scale(first) == protocol::exact_scale) return false;
    const auto own = static_cast<float>(protocol::scale_from(scale(first), 1));
    const auto quantise = [&](std::uint64_t at, std::span<const float> values) {
        return numeric::quantise(values.data(), values.size(), own, lanes.data() + (at - first) * ATP_LANE_BYTES);
    };
    return visit_values(*tensor_, first, lanes.size() / ATP_LANE_BYTES, quantise);
}

}  // namespace atp::tensor
