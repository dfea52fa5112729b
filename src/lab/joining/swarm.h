// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "joining/world.h"

namespace atp::joining {

struct JoinSwarmOptions {
    std::uint64_t first_seed = 1;
    std::uint64_t runs = 1;
    unsigned threads = 1;
    bool calm = false;  // without faults
    const std::atomic<bool>* stop = nullptr;
    // Never called by two threads at once.
    std::function<void(const JoinReport&)> failed;
    std::function<void(std::uint64_t)> progress;  // number of finished runs
};

struct JoinSwarmSummary {
    std::uint64_t runs = 0;
    std::uint64_t failures = 0;
    std::uint64_t packets = 0;
    std::uint64_t operations = 0;
    std::uint64_t incarnations = 0;
    std::uint64_t errors = 0;
};

// Runs the scenarios of consecutive seeds.
[[nodiscard]] JoinSwarmSummary run_join_swarm(const JoinSwarmOptions& options);

}  // namespace atp::joining
