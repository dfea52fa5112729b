// SPDX-License-Identifier: Apache-2.0
#include "host/host_ranks.h"

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <utility>

namespace atp::host {
inline namespace ATP_VARIANT {

HostRanks::HostRanks(const HostRanksConfig& config)
    : slots_(config.slots),
      random_(config.seed, 0x4057),
      words_(slots_ + std::size_t{1}),
      places_(slots_),
      in_network_(slots_) {
    assert(config.rules.network);
    const auto ranks = static_cast<unsigned>(config.rules.ranks.size());
    for (unsigned rank = 0; rank < ranks; ++rank) {
        ranks_.push_back(
            {.group = protocol::HostGroup({.ranks = ranks, .slots = slots_, .other_hosts = true, .speaks = rank == 0}),
             .rules = config.rules});
        ranks_.back().rules.rank = rank;
        awake_.push_back(rank);
    }
    const std::size_t place = config.rules.chunk_lanes * ATP_LANE_BYTES;
    memory_ = std::make_unique_for_overwrite<std::byte[]>(slots_ * (ranks + std::size_t{1}) * place);
    std::byte* at = memory_.get();
    for (unsigned slot = 0; slot < slots_; ++slot) {
        words_[slot].purposes.resize(ranks);
        places_[slot].sums = std::exchange(at, at + place);
        for (unsigned rank = 0; rank < ranks; ++rank) places_[slot].ranks.push_back(std::exchange(at, at + place));
    }
}

void HostRanks::submit(unsigned rank, protocol::Tensor& tensor) {
    Rank& own = ranks_[rank];
    own.parts.emplace_back(tensor, 1, own.rules).submit(own.group);
    wake(rank);
}

void HostRanks::finish(std::uint64_t chunk) {
    const auto slot = static_cast<unsigned>(chunk % slots_);
    in_network_[slot].reset();
    PlainBoard(words_).complete(slot, chunk);
    notify(slot);
}

std::optional<HostRanks::SentChunk> HostRanks::poll_send() {
    if (to_send_.empty()) return std::nullopt;
    const SentChunk first = to_send_.front();
    to_send_.pop_front();
    return first;
}

std::optional<unsigned> HostRanks::poll_stored() {
    if (stored_.empty()) return std::nullopt;
    const unsigned first = stored_.front();
    stored_.pop_front();
    return first;
}

// --------------------------------------------------------------------------------------------------------------- Steps

void HostRanks::wake(unsigned rank) {
    if (std::exchange(ranks_[rank].waits_for, std::nullopt)) awake_.push_back(rank);
}

void HostRanks::notify(unsigned slot) {
    ++words_[slot].state;
    for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
        if (ranks_[rank].waits_for == slot) wake(rank);
    }
    if (slot != slots_) notify(slots_);
}

void HostRanks::run() {
    while (!awake_.empty()) {
        const auto turn = static_cast<std::ptrdiff_t>(random_.below(awake_.size()));
        if (!step(awake_[static_cast<std::size_t>(turn)])) awake_.erase(awake_.begin() + turn);
    }
}

tensor::HostPart& HostRanks::part_of(Rank& rank, std::uint64_t chunk) {
    return *(std::ranges::upper_bound(rank.parts, chunk, {}, &tensor::HostPart::first_chunk) - 1);
}

bool HostRanks::step(unsigned rank) {
    using Kind = protocol::HostAction::Kind;
    Rank& own = ranks_[rank];
    if (own.group.begins_pass()) own.seen = words_[own.group.wait_slot()].state;
    const std::uint64_t next = own.group.next_load();
    const bool next_ready = next != own.group.submitted() && part_of(own, next).ready(next);
    PlainBoard board(words_);
    const protocol::HostAction action = own.group.poll_action(board, next_ready);
    const std::uint64_t chunk = action.chunk;
    switch (action.kind) {
        case Kind::none: break;
        case Kind::load:
            part_of(own, chunk).load(chunk, places_[action.slot]);
            words_[action.slot].purposes[rank] = part_of(own, chunk).purpose();
            break;
        case Kind::add: part_of(own, chunk).add(chunk, action.range, places_[action.slot]); break;
        case Kind::store: part_of(own, chunk).store(chunk, places_[action.slot]); break;
        case Kind::send:
            in_network_[action.slot] = part_of(own, chunk).sums_of(chunk, places_[action.slot], nullptr);
            to_send_.push_back({chunk, in_network_[action.slot].get()});
            break;
        case Kind::notify: notify(action.slot); break;
        case Kind::wait:
            if (own.seen != words_[action.slot].state) break;
            own.waits_for = action.slot;
            return false;
        case Kind::mismatch:
        case Kind::lost: throw std::logic_error("ranks of a simulated host call the same operations, and end together");
    }
    // The group counts a chunk as stored one step after the copy.
    while (!own.parts.empty() && own.parts.front().end_chunk() <= own.group.next_store()) {
        own.parts.pop_front();
        stored_.push_back(rank);
    }
    return true;
}

}  // namespace ATP_VARIANT
}  // namespace atp::host
