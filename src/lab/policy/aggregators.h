// SPDX-License-Identifier: Apache-2.0
#pragma once

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
    explicit Aggregators(bool in_sequence) : in_sequence_(in_sequence) {}

    // The part of this job begins at index `first`. Its length is the number of aggregators of the job's channels.
    void give_part(std::uint32_t job, std::uint32_t first) { parts_[job] = first; }

    [[nodiscard]] std::uint32_t index(const protocol::ChannelConfig& channel, std::uint32_t slot,
                                      std::uint32_t attempt) const override;

  private:
    bool in_sequence_;
    std::map<std::uint32_t, std::uint32_t> parts_;
};

}  // namespace atp::policy
