// SPDX-License-Identifier: Apache-2.0
#include "protocol/slot_indices.h"

#include <algorithm>

namespace atp::protocol {
namespace {

constexpr std::uint8_t score_of_collision = 2;
constexpr std::uint8_t score_to_move = 3;
// Candidates tried to find an index that no other slot of the channel uses.
constexpr unsigned index_candidates = 4;

}  // namespace

SlotIndices::SlotIndices(const ChannelConfig& channel)
    : channel_(channel),
      attempts_(channel.window()),
      collisions_(channel.window()),
      first_(channel.window()),
      after_(channel.window()),
      before_(channel.window()) {
    link_all();
}

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
    unlink(slot);
    for (unsigned candidate = 0; candidate < index_candidates; ++candidate) {
        next.index = channel_.index(seq, ++attempts_[slot]);
        if (!in_use(next.index)) break;
    }
    link(slot);
    return next;
}

bool SlotIndices::in_use(std::uint32_t index) const {
    for (std::uint32_t slot = first_[bucket_of(index)]; slot != no_slot; slot = after_[slot]) {
        if (this->index(slot) == index) return true;
    }
    return false;
}

void SlotIndices::link(std::uint32_t slot) {
    std::uint32_t& first = first_[bucket_of(index(slot))];
    before_[slot] = no_slot;
    after_[slot] = first;
    if (first != no_slot) before_[first] = slot;
    first = slot;
}

void SlotIndices::unlink(std::uint32_t slot) {
    const std::uint32_t before = before_[slot];
    const std::uint32_t after = after_[slot];
    (before == no_slot ? first_[bucket_of(index(slot))] : after_[before]) = after;
    if (after != no_slot) before_[after] = before;
}

void SlotIndices::link_all() {
    std::ranges::fill(first_, no_slot);
    for (std::uint32_t slot = 0; slot < channel_.window(); ++slot) link(slot);
}

}  // namespace atp::protocol
