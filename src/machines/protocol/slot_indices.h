// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "protocol/channel.h"

namespace atp::protocol {

// Aggregator index of each slot of a channel. A slot moves to another index if it collided in two of its last three
// rounds. One collision can be transient. Two jobs that alternate at one index both reach the threshold, so neither
// waits for the other (H12, docs/spec/hazards.md#h12).
//
// Anyone who can send a gradient of the job can report a collision, so a move must be cheap: the slots whose indices
// have equal low bits are in one list, which is short because indices are hashes.
//
// Ownership: owns five numbers per slot, allocated at construction.
// Calling order: next() once for each fragment, when it is complete.
// Threads: none.
// Failure: none. If other slots use each of the tried indices, the slot takes the last one.
class SlotIndices {
  public:
    explicit SlotIndices(const ChannelConfig& channel);

    // Index of `seq`, which must be the latest fragment of its slot.
    [[nodiscard]] std::uint32_t index(std::uint32_t seq) const {
        return channel_.index(seq, attempts_[channel_.slot(seq)]);
    }
    // Index for seq + W. `index`: the index of seq; `collision`: a gradient of seq collided. `moved`: the slot has
    // moved to another index.
    struct Next {
        std::uint32_t index = 0;
        bool moved = false;
    };
    [[nodiscard]] Next next(std::uint32_t seq, std::uint32_t index, bool collision);

    template <class Archive>
    void persist(Archive& archive) {
        for (std::uint32_t& attempt : attempts_) archive.value(attempt);
        for (std::uint8_t& score : collisions_) archive.value(score);
        if constexpr (Archive::reads) link_all();
    }

  private:
    static constexpr std::uint32_t no_slot = 0xFFFFFFFF;

    [[nodiscard]] std::uint32_t bucket_of(std::uint32_t index) const { return channel_.slot(index); }
    [[nodiscard]] bool in_use(std::uint32_t index) const;
    void link(std::uint32_t slot);
    void unlink(std::uint32_t slot);
    void link_all();

    ChannelConfig channel_;
    std::vector<std::uint32_t> attempts_;        // per slot: hash attempt of its index
    std::vector<std::uint8_t> collisions_;       // per slot: collision score of the last rounds
    std::vector<std::uint32_t> first_;           // per bucket of indices: the first slot of its list
    std::vector<std::uint32_t> after_, before_;  // per slot: its neighbours in that list
};

}  // namespace atp::protocol
