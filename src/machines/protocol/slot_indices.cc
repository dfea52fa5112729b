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
      base_mask_(channel.base_slots() - 1U),
      given_(channel.window()),
      attempts_(channel.base_slots()),
      collisions_(channel.base_slots()),
      first_(channel.base_slots()),
      after_(channel.base_slots()),
      before_(channel.base_slots()) {
    std::ranges::fill(first_, no_slot);
    for (std::uint32_t base = 0; base <= base_mask_; ++base) choose(base);
    restore_given();
}

SlotIndices::Next SlotIndices::next(std::uint32_t seq, std::uint32_t index, bool collision) {
    const std::uint32_t base = seq & base_mask_;
    Next next{.index = current(seq)};
    // Otherwise the base slot has moved since seq got its index.
    if (index == next.index) {
        std::uint8_t& score = collisions_[base];
        if (!collision) {
            score = static_cast<std::uint8_t>(score == 0 ? 0 : score - 1);
        } else if ((score = static_cast<std::uint8_t>(score + score_of_collision)) >= score_to_move) {
            score = 0;
            unlink(base);
            ++attempts_[base];
            choose(base);
            next = {.index = current(base), .moved = true};
        }
    }
    given_[channel_.slot(seq)] = next.index;
    return next;
}

void SlotIndices::choose(std::uint32_t base) {
    for (unsigned candidate = 1; candidate < index_candidates && in_use(current(base)); ++candidate) ++attempts_[base];
    link(base);
}

bool SlotIndices::in_use(std::uint32_t index) const {
    for (std::uint32_t base = first_[bucket_of(index)]; base != no_slot; base = after_[base]) {
        if (current(base) == index) return true;
    }
    return false;
}

void SlotIndices::link(std::uint32_t base) {
    std::uint32_t& first = first_[bucket_of(current(base))];
    before_[base] = no_slot;
    after_[base] = first;
    if (first != no_slot) before_[first] = base;
    first = base;
}

void SlotIndices::unlink(std::uint32_t base) {
    const std::uint32_t before = before_[base];
    const std::uint32_t after = after_[base];
    (before == no_slot ? first_[bucket_of(current(base))] : after_[before]) = after;
    if (after != no_slot) before_[after] = before;
}

void SlotIndices::restore_given() {
    for (std::uint32_t slot = 0; slot < given_.size(); ++slot) given_[slot] = current(slot);
}

void SlotIndices::restore() {
    std::ranges::fill(first_, no_slot);
    for (std::uint32_t base = 0; base <= base_mask_; ++base) link(base);
}

}  // namespace atp::protocol
