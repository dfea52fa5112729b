// SPDX-License-Identifier: Apache-2.0
// All ranks of `atp bench` on this host: a switch, and a process for each rank of ATP and of its peer.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/atp/bench_flags.h"
#include "apps/common/interruption.h"
#include "base/result.h"
#include "switchd/node.h"

namespace atp::apps {

// Per size: the seconds of every round of every repetition.
using BenchTimes = std::map<std::uint64_t, std::vector<double>>;

// Ownership: owns the switch that it starts; borrows options and interruption.
// Calling order: start_switch(), then run_atp() and run_gloo() any number of times.
// Threads: one. A signal ends the processes of a run.
// Failure: each call returns the reason.
class BenchHere {
  public:
    BenchHere(const BenchOptions& options, const Interruption& interruption)
        : options_(options), interruption_(interruption) {}

    // No effect if the options name a switch.
    [[nodiscard]] Result<void> start_switch();
    // Adds to `times`. `last`: the output of rank 0 for each size, by bytes.
    [[nodiscard]] Result<void> run_atp(BenchTimes& times, nlohmann::ordered_json& last);
    [[nodiscard]] Result<void> run_gloo(BenchTimes& times, const std::string& algorithm);

  private:
    [[nodiscard]] std::vector<std::string> rank_command(std::uint32_t rank, const std::string& store) const;

    const BenchOptions& options_;
    const Interruption& interruption_;
    std::unique_ptr<switchd::SwitchNode> node_;
    std::string switch_address_;
};

}  // namespace atp::apps
