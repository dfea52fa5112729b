// SPDX-License-Identifier: Apache-2.0
#include "protocol/host_group.h"

#include <algorithm>
#include <cassert>

#include "protocol/breaks.h"

namespace atp::protocol {
inline namespace ATP_VARIANT {

using Kind = HostAction::Kind;

std::uint64_t HostGroup::submit(std::uint64_t purpose, std::uint64_t chunks, std::uint32_t ranges,
                                std::uint32_t last_ranges) {
    assert(chunks != 0 && ranges != 0 && last_ranges != 0);
    operations_.push_back(
        {.first = submitted_, .chunks = chunks, .purpose = purpose, .ranges = ranges, .last_ranges = last_ranges});
    submitted_ += chunks;
    return operations_.back().first;
}

const HostGroup::ChunkedOperation& HostGroup::operation_of(std::uint64_t chunk) const {
    const auto after = std::ranges::upper_bound(operations_, chunk, {}, &ChunkedOperation::first);
    assert(after != operations_.begin());
    return *(after - 1);
}

std::uint32_t HostGroup::ranges_of(std::uint64_t chunk) const {
    const ChunkedOperation& operation = operation_of(chunk);
    return chunk + 1 == operation.first + operation.chunks ? operation.last_ranges : operation.ranges;
}

HostAction HostGroup::poll_action(HostBoard& board, bool next_ready) {
    switch (step_) {
        case Step::look_complete: return look_complete(board);
        case Step::look_open: return look_open(board);
        case Step::compare: return compare(board);
        case Step::claim:
            if (!board.claim(slot_of(at_), at_, range_) && !ATP_BREAK(add_unclaimed)) return next(Step::look_open);
            return act(Kind::add, at_, Step::finish);
        case Step::look_offered: return look_offered(board);
        case Step::look_free: return look_free(board, next_ready);
        case Step::look_lost: return look_lost(board);
        case Step::arrive:
            ++loaded_;
            if (board.arrive(slot_of(at_)) != uses_of(at_) && !ATP_BREAK(open_early)) return next(Step::look_complete);
            return next(Step::open);
        case Step::open: board.open(slot_of(at_), at_); return act(Kind::notify, at_, Step::look_complete);
        case Step::finish:
            if (board.finish(slot_of(at_)) != ranges_of(at_) && !ATP_BREAK(complete_early_on_host)) {
                return next(Step::look_complete);
            }
            return next(Step::conclude);
        case Step::conclude: return conclude(board);
        case Step::leave: return leave(board);
    }
    return {};
}

HostAction HostGroup::look_complete(const HostBoard& board) {
    at_ = stored_;
    if (stored_ == loaded_) return next(Step::look_offered);
    if (!board.is_complete(slot_of(stored_), stored_) && !ATP_BREAK(store_early)) return next(Step::look_open);
    return act(Kind::store, stored_, Step::leave);
}

// Adds to the oldest chunk that has ranges left. A chunk that is not open yet has no later one that matters.
HostAction HostGroup::look_open(const HostBoard& board) {
    const auto range = board.unclaimed(slot_of(at_), at_);
    if (!range) return next(Step::look_offered);
    if (*range < ranges_of(at_)) {
        range_ = *range;
        return next(compared_ <= at_ ? Step::compare : Step::claim);
    }
    if (++at_ == loaded_) return next(Step::look_offered);
    return {};
}

// In order, so that all hosts send the same chunks to the same channels.
HostAction HostGroup::look_offered(const HostBoard& board) {
    if (!config_.speaks || sent_ == loaded_) return next(Step::look_free);
    if (!board.is_offered(slot_of(sent_), sent_) && !ATP_BREAK(send_early)) return next(Step::look_free);
    return act(Kind::send, sent_++, Step::look_complete);
}

// No rank adds to a chunk with two purposes, so each rank finds its ranges unclaimed, and compares (H45,
// docs/spec/hazards.md#h45).
HostAction HostGroup::compare(const HostBoard& board) {
    const auto other = board.rank_without(slot_of(at_), operation_of(at_).purpose);
    if (other && !ATP_BREAK(add_anything)) {
        return {.kind = Kind::mismatch, .slot = slot_of(at_), .chunk = at_, .rank = *other};
    }
    compared_ = at_ + 1;
    return next(Step::claim);
}

HostAction HostGroup::look_free(const HostBoard& board, bool next_ready) {
    at_ = loaded_;
    if (loaded_ == submitted_ || !next_ready) return next(Step::look_lost);
    const bool used = loaded_ >= config_.slots;
    const std::uint64_t uses = uses_of(loaded_) - config_.ranks;
    if (used && board.left(slot_of(loaded_)) != uses && !ATP_BREAK(load_early)) return next(Step::look_lost);
    return act(Kind::load, loaded_, Step::arrive);
}

HostAction HostGroup::look_lost(const HostBoard& board) {
    const bool idle = stored_ == submitted_;
    if (!idle) {
        if (const auto rank = board.lost(awaited())) return {.kind = Kind::lost, .chunk = awaited(), .rank = *rank};
    }
    HostAction waits = act(Kind::wait, awaited(), Step::look_complete);
    waits.slot = wait_slot();
    return waits;
}

HostAction HostGroup::conclude(HostBoard& board) {
    HostAction wakes = act(Kind::notify, at_, Step::look_complete);
    if (config_.other_hosts) {
        board.offer(slot_of(at_), at_);
        wakes.slot = config_.slots;
    } else {
        board.complete(slot_of(at_), at_);
    }
    return wakes;
}

HostAction HostGroup::leave(HostBoard& board) {
    const std::uint64_t stored = stored_++;
    while (!operations_.empty() && operations_.front().first + operations_.front().chunks <= stored_) {
        operations_.pop_front();
    }
    if (board.leave(slot_of(stored)) != uses_of(stored)) return next(Step::look_complete);
    return act(Kind::notify, stored, Step::look_complete);
}

}  // namespace ATP_VARIANT
}  // namespace atp::protocol
