// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "protocol/policy_hooks.h"

namespace atp::policy {

// The defaults are the rules of the protocol.
struct ExperimentConfig {
    std::uint32_t first_aggregator = 0;  // added to each index, so that jobs can use separate parts of the table
    bool linear = false;                 // slots take indices in sequence, not by hash (baseline of ATP §5.4.2)
    bool fixed_window = false;           // no congestion control, as in the papers' loss experiments
};

// Rules of the papers' experiments.
//
// Ownership: a value.
// Threads: immutable after construction, so any thread may call it.
// Failure: none.
class Experiment final : public protocol::PolicyHooks {
  public:
    explicit Experiment(const ExperimentConfig& config) : config_(config) {}

    [[nodiscard]] std::uint32_t index(const protocol::ChannelConfig& channel, std::uint32_t slot,
                                      std::uint32_t attempt) const override;
    [[nodiscard]] bool keeps_window() const override { return config_.fixed_window; }

  private:
    ExperimentConfig config_;
};

}  // namespace atp::policy
