// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/hash.h"
#include "wire/format.h"

namespace atp::protocol {

// Who sends the lanes of a fragment, and who gets its result. All workers must have the same for a fragment.
//
// Ownership: a value. Threads: none. Failure: none.
struct Delivery {
    std::uint16_t owner = ATP_WORKER_ALL;  // ATP_WORKER_ALL: all workers send, and all get the sum
    bool one_sender = false;  // true: the owner sends, and all others get its lanes; false: only the owner gets the sum

    // Of a packet about the fragment.
    [[nodiscard]] static constexpr Delivery of(const atp_header& header) {
        return {.owner = header.peer, .one_sender = (header.flags & ATP_FLAG_ONE_SENDER) != 0};
    }

    [[nodiscard]] constexpr bool is_owned() const { return owner != ATP_WORKER_ALL; }
    // Its numbers are in the result.
    [[nodiscard]] constexpr bool contributes(std::uint16_t rank) const { return !one_sender || owner == rank; }
    // The sum is for this worker. In a job of several workers it adds its own numbers to the sum of the others at home:
    // the ACK brings integers, and its own lanes need not travel.
    [[nodiscard]] constexpr bool adds_at_home(std::uint16_t rank) const {
        return is_owned() && !one_sender && owner == rank;
    }
    // False: the ACK of this worker has no lanes.
    [[nodiscard]] constexpr bool receives(std::uint16_t rank) const {
        return !is_owned() || (owner == rank) != one_sender;
    }
    // Part of a gradient's argument: gradients for different owners are never added (H59, docs/spec/hazards.md#h59).
    [[nodiscard]] constexpr std::uint16_t mark() const {
        return is_owned() ? static_cast<std::uint16_t>(mix(owner + 1U + (one_sender ? 0x10000U : 0U)))
                          : std::uint16_t{0};
    }

    friend constexpr bool operator==(const Delivery&, const Delivery&) = default;
};

}  // namespace atp::protocol
