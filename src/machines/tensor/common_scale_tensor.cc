// SPDX-License-Identifier: Apache-2.0
#include "tensor/common_scale_tensor.h"

#include <algorithm>
#include <array>

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
    std::array<float, values_max> values;
    while (!lanes.empty()) {
        const std::size_t count = std::min(values_max, lanes.size() / ATP_LANE_BYTES);
        load_values(*tensor_, first, std::span(values).first(count));
        if (!numeric::quantise(values.data(), count, own, lanes.data())) return false;
        lanes = lanes.subspan(count * ATP_LANE_BYTES);
        first += count;
    }
    return true;
}

}  // namespace atp::tensor
