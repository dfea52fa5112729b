// SPDX-License-Identifier: Apache-2.0
#include "tensor/vote_tensor.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "wire/packet.h"

namespace atp::tensor {
namespace {

// One lane counts both votes. At most 1,024 ranks have each.
constexpr std::uint32_t too_small = 1;
constexpr std::uint32_t large_enough = 1U << 16U;

constexpr std::size_t vote_block = 256;

// The largest magnitude, NaN above all.
std::uint32_t largest_of(std::span<const std::byte> floats) {
    std::uint32_t largest = 0;
    for (std::size_t at = 0; at < floats.size(); at += ATP_LANE_BYTES) {
        largest = std::max(largest, wire::load_u32(floats.data() + at) & ~(1U << 31U));
    }
    return largest;
}

}  // namespace

bool VoteTensor::ready(std::uint64_t first, std::uint64_t count) const {
    const std::uint64_t begin = first * span_elements;
    const std::uint64_t end = std::min((first + count) * span_elements, whole_->size());
    if (!whole_->ready(begin, end - begin)) return false;
    for (std::uint64_t span = first; span < first + count; ++span) {
        if (!scales_->ready(span)) return false;
    }
    return true;
}

// Usually the first block decides.
std::uint32_t VoteTensor::vote(std::uint64_t span) const {
    const std::uint32_t least = least_magnitude(scales_->proposal(span), ranks_, form_);
    const std::uint64_t end = std::min((span + 1) * span_elements, whole_->size());
    std::array<std::byte, vote_block * ATP_LANE_BYTES> wire;
    std::uint32_t largest = 0;
    for (std::uint64_t first = span * span_elements; first < end; first += vote_block) {
        const std::size_t count = std::min<std::uint64_t>(vote_block, end - first);
        const std::span<std::byte> floats = std::span(wire).first(count * ATP_LANE_BYTES);
        whole_->load_floats(first, floats);
        largest = std::max(largest, largest_of(floats));
        if (largest >= least) return large_enough;
    }
    return largest == 0 ? 0 : too_small;
}

void VoteTensor::load(std::uint64_t first, std::span<std::byte> lanes) const {
    for (std::size_t at = 0; at < lanes.size(); at += ATP_LANE_BYTES) {
        wire::store_u32(lanes.data() + at, vote(first + at / ATP_LANE_BYTES));
    }
}

void VoteTensor::store(std::uint64_t first, std::span<const std::byte> lanes) {
    for (std::size_t at = 0; at < lanes.size(); at += ATP_LANE_BYTES) {
        const std::uint32_t votes = wire::load_u32(lanes.data() + at);
        scales_->decide(first + at / ATP_LANE_BYTES, votes == 0 || votes >= large_enough);
    }
}

}  // namespace atp::tensor
