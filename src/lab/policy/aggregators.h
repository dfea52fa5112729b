// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>

#include "protocol/index_rule.h"

namespace atp::policy {

// Aggregators as the papers' experiments assign them: in sequence instead of by hash (the baseline of ATP §5.4.2), and
// parts of the table for single jobs.
//
// Ownership: a value.
// Calling order: give_part() before the machines of the job exist.
// Threads: immutable after that, so any thread may call index().
// Failure: none.
class Aggregators final : public protocol::IndexRule {
  public:
    // `in_flight`: packets of a channel; 0: as many as it has slots.
    explicit Aggregators(bool in_sequence, std::uint32_t in_flight = 0)
        : in_sequence_(in_sequence), in_flight_(in_flight) {}

    // The part of this job begins at index `first`. Its length is the number of aggregators of the job's channels.
    void give_part(std::uint32_t job, std::uint32_t first) { parts_[job] = first; }

    [[nodiscard]] std::uint32_t base_slots(std::uint32_t slots) const override {
        return in_flight_ == 0 ? slots : std::min(std::max(std::bit_ceil(in_flight_), 8U), slots);
    }
    [[nodiscard]] std::uint32_t index(const protocol::ChannelConfig& channel, std::uint32_t slot,
                                      std::uint32_t attempt) const override;

  private:
    bool in_sequence_;
    std::uint32_t in_flight_;
    std::map<std::uint32_t, std::uint32_t> parts_;
};

}  // namespace atp::policy
