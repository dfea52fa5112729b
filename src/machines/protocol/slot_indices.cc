// SPDX-License-Identifier: Apache-2.0
#include "protocol/slot_indices.h"

namespace atp::protocol {
namespace {

constexpr std::uint8_t score_of_collision = 2;
constexpr std::uint8_t score_to_move = 3;
// Candidates tried to find an index that no other slot of the channel uses.
constexpr unsigned index_candidates = 4;

}  // namespace

SlotIndices::SlotIndices(const ChannelConfig& channel)
    : channel_(channel), attempts_(channel.window()), collisions_(channel.window()) {}

SlotIndices::Next SlotIndices::next(std::uint32_t seq, std::uint32_t index, bool collision) {
    const std::uint32_t slot = channel_.slot(seq);
    std::uint8_t& score = collisions_[slot];
    if (!collision) {
        score = static_cast<std::uint8_t>(score == 0 ? 0 : score - 1);
        return {.index = index};
    }
    score = static_cast<std::uint8_t>(score + score_of_collision);
    if (score < score_to_move) return {.index = index};
    score = 0;
    Next next{.index = index, .moved = true};
    for (unsigned candidate = 0; candidate < index_candidates; ++candidate) {
        next.index = channel_.index(seq, ++attempts_[slot]);
        if (!in_use(next.index, slot)) break;
    }
    return next;
}

bool SlotIndices::in_use(std::uint32_t index, std::uint32_t except_slot) const {
    for (std::uint32_t slot = 0; slot < channel_.window(); ++slot) {
        if (slot != except_slot && channel_.index(slot, attempts_[slot]) == index) return true;
    }
    return false;
}

}  // namespace atp::protocol
