// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "protocol/channel.h"

namespace atp::protocol {

// Aggregator index of each slot of a channel. Slots share the index of a base slot (ChannelConfig::base_slot()). Base
// slots begin with different indices, so that the fragments of one job do not collide with each other unless one is
// lost. A base slot moves to another index if two of the last three fragments with its index collided. One collision
// can be transient. Two jobs that alternate at one index both reach the threshold, so neither waits for the other (H12,
// docs/spec/hazards.md#h12).
//
// Anyone who can send a gradient of the job can report a collision, so a move must be cheap: the slots whose indices
// have equal low bits are in one list, which is short because indices are hashes.
//
// Ownership: owns a number per slot and five per base slot, allocated at construction.
// Calling order: next() once for each fragment, when it is complete.
// Threads: none.
// Failure: none. If other slots use each of the tried indices, the slot takes the last one.
class SlotIndices {
  public:
    explicit SlotIndices(const ChannelConfig& channel);

    // Index of `seq`, which must be the latest fragment of its slot.
    [[nodiscard]] std::uint32_t index(std::uint32_t seq) const { return given_[channel_.slot(seq)]; }
    // Index that the base slot of `seq` has now.
    [[nodiscard]] std::uint32_t current(std::uint32_t seq) const {
        return channel_.index(seq, attempts_[seq & base_mask_]);
    }
    // Index for seq + W. `index`: the index of seq; `collision`: a gradient of seq collided. `moved`: the base slot has
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
        // Otherwise they follow from the attempts.
        if (attempts_.size() < given_.size()) {
            for (std::uint32_t& index : given_) archive.value(index);
        } else if constexpr (Archive::reads) {
            restore_given();
        }
        if constexpr (Archive::reads) restore();
    }

  private:
    static constexpr std::uint32_t no_slot = 0xFFFFFFFF;

    [[nodiscard]] std::uint32_t bucket_of(std::uint32_t index) const { return index & base_mask_; }
    [[nodiscard]] bool in_use(std::uint32_t index) const;
    // Takes the first of a few attempts whose index no base slot uses, beginning with its own, or the last of them.
    void choose(std::uint32_t base);
    void link(std::uint32_t base);
    void unlink(std::uint32_t base);
    void restore();
    void restore_given();

    ChannelConfig channel_;
    std::uint32_t base_mask_;                    // base slots - 1
    std::vector<std::uint32_t> given_;           // per slot: index of its fragment, as the ACK before said
    std::vector<std::uint32_t> attempts_;        // per base slot: hash attempt of its index
    std::vector<std::uint8_t> collisions_;       // per base slot: collision score of the last fragments
    std::vector<std::uint32_t> first_;           // per bucket of indices: the first base slot of its list
    std::vector<std::uint32_t> after_, before_;  // per base slot: its neighbours in that list
};

}  // namespace atp::protocol
