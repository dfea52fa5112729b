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
// Ownership: owns two numbers per slot, allocated at construction.
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
    }

  private:
    [[nodiscard]] bool in_use(std::uint32_t index, std::uint32_t except_slot) const;

    ChannelConfig channel_;
    std::vector<std::uint32_t> attempts_;   // per slot: hash attempt of its index
    std::vector<std::uint8_t> collisions_;  // per slot: collision score of the last rounds
};

}  // namespace atp::protocol
