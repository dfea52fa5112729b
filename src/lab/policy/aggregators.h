// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>

#include "protocol/index_rule.h"

namespace atp::policy {

struct Assignment {
    bool in_sequence = false;  // instead of by hash: the baseline of ATP §5.4.2
    // Equal parts of the table; a job takes its aggregators from the part of its number modulo `parts`. The order in
    // which jobs join would need a word between the ranks of a job and all its servers; the number they know already.
    std::uint32_t parts = 1;
    // Packets of a channel, of which each has an index of its own. 0: as many as it has slots; nullopt: as many as the
    // protocol assumes.
    std::optional<std::uint32_t> in_flight{};
};

// Aggregators as the papers' experiments assign them, for the simulator and for real switches and ranks.
//
// Ownership: a value.
// Threads: immutable, so any thread may call it.
// Failure: none. All jobs that share a part collide there, and so do the packets of one channel if its part is smaller
//   than its window.
class Aggregators final : public protocol::IndexRule {
  public:
    explicit Aggregators(const Assignment& assignment) : assignment_(assignment) {}

    [[nodiscard]] std::uint32_t base_slots(std::uint32_t slots) const override {
        if (!assignment_.in_flight) return IndexRule::base_slots(slots);
        const std::uint32_t packets = *assignment_.in_flight;
        return packets == 0 ? slots : std::min(std::max(std::bit_ceil(packets), 8U), slots);
    }
    [[nodiscard]] std::uint32_t index(const protocol::ChannelConfig& channel, std::uint32_t slot,
                                      std::uint32_t attempt) const override;

  private:
    Assignment assignment_;
};

}  // namespace atp::policy
