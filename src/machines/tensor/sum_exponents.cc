// SPDX-License-Identifier: Apache-2.0
#include "tensor/sum_exponents.h"

#include <algorithm>
#include <cstddef>

namespace atp::tensor {

bool SumExponents::ready(std::uint64_t first, std::uint64_t count) const {
    const std::uint64_t cells_of_span = scales_->span() / scales_->cell();
    const std::uint64_t end = std::min((first + count) * cells_of_lane, scales_->cells());
    const std::uint64_t last_span = (end - 1) / cells_of_span;
    for (std::uint64_t span = first * cells_of_lane / cells_of_span; span <= last_span; ++span) {
        if (!scales_->poll_settled(span)) return false;
    }
    return true;
}

void SumExponents::load(std::uint64_t first, std::span<std::byte> lanes) const {
    std::uint64_t cell = first * cells_of_lane;
    for (std::byte& exponent : lanes) {
        exponent = cell < scales_->cells() ? std::byte{scales_->exponent(cell)} : std::byte{0};
        ++cell;
    }
}

void SumExponents::store(std::uint64_t first, std::span<const std::byte> lanes) {
    std::uint64_t cell = first * cells_of_lane;
    for (const std::byte exponent : lanes) {
        if (cell == scales_->cells()) break;
        scales_->settle_cell(cell, std::to_integer<std::uint8_t>(exponent));
        ++cell;
    }
}

}  // namespace atp::tensor
