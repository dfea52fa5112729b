// SPDX-License-Identifier: Apache-2.0
#include "tensor/scale_history.h"

namespace atp::tensor {

bool ScaleHistory::settled(std::uint64_t first, std::uint32_t round) {
    if (rounds(first) == round) return true;
    // The fragment may settle between the first load and the store. It is therefore loaded again: after the store,
    // settle() sees the flag.
    waited_for_ = true;
    return rounds(first) == round;
}

void ScaleHistory::settle(std::uint64_t first, std::uint8_t scale) {
    const std::uint32_t rounds_now = rounds(first) + 1;
    places_[first / fragment_] = rounds_now << scale_bits | scale;
    if (waited_for_.exchange(false)) feed_->advance();
}

}  // namespace atp::tensor
