// SPDX-License-Identifier: Apache-2.0
#include "tensor/vote_tensor.h"

#include <cstddef>

#include "wire/packet.h"

namespace atp::tensor {

bool VoteTensor::ready(std::uint64_t first, std::uint64_t count) const {
    for (std::uint64_t span = first; span < first + count; ++span) {
        if (!votes_->ready(span)) return false;
    }
    return true;
}

void VoteTensor::load(std::uint64_t first, std::span<std::byte> lanes) const {
    for (std::size_t at = 0; at < lanes.size(); at += ATP_LANE_BYTES) {
        wire::store_u32(lanes.data() + at, votes_->own(first + at / ATP_LANE_BYTES));
    }
}

void VoteTensor::store(std::uint64_t first, std::span<const std::byte> lanes) {
    for (std::size_t at = 0; at < lanes.size(); at += ATP_LANE_BYTES) {
        votes_->decide(first + at / ATP_LANE_BYTES, wire::load_u32(lanes.data() + at));
    }
}

}  // namespace atp::tensor
