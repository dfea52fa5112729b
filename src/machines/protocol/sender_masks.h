// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "protocol/membership.h"

namespace atp::protocol {

// Masks in the gradients of one worker for the sum of another, which stays at home: switches expect all workers but the
// owner (docs/spec/owners.md).
//
// Ownership: a value. Threads: immutable after construction. Failure: none.
class SenderMasks {
  public:
    struct Masks {
        std::uint32_t mask0 = 0;
        std::uint32_t mask1 = 0;
    };

    // Of a worker that runs no fragment with an owner and checks no audit lane, or is alone in its job.
    SenderMasks() = default;
    SenderMasks(const Membership& membership, std::uint16_t rank) {
        const Place& own = membership.place(rank);
        for (unsigned other = 0; other < membership.workers(); ++other) {
            const Place& owner = membership.place(static_cast<std::uint16_t>(other));
            Masks masks{.mask0 = own.mask0, .mask1 = own.mask1};
            if (owner.unit == own.unit) masks.mask0 &= ~(1U << owner.member);
            if (std::has_single_bit(membership.unit_mask(owner.unit))) masks.mask1 &= ~(1U << owner.unit);
            masks_.push_back(masks);
        }
    }

    [[nodiscard]] unsigned workers() const { return static_cast<unsigned>(masks_.size()); }
    [[nodiscard]] bool has_others() const { return masks_.size() > 1; }
    // Requires has_others(), and an owner that is another worker.
    [[nodiscard]] const Masks& without(std::uint16_t owner) const { return masks_[owner]; }

  private:
    std::vector<Masks> masks_;  // per owner
};

}  // namespace atp::protocol
