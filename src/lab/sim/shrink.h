// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "sim/scenario.h"

namespace atp::sim {

struct Shrunk {
    Scenario scenario;                  // the smallest that was found to fail
    std::vector<std::string> failures;  // of its run
    unsigned runs = 0;
};

// Looks for a smaller scenario that fails as well: fewer jobs, ranks, fragments and faults. It keeps each step after
// which a run still fails, until none is left or `most_runs` are made. Requires a scenario that fails.
[[nodiscard]] Shrunk shrink(const Scenario& scenario, unsigned most_runs, const std::atomic<bool>* stop = nullptr);

}  // namespace atp::sim
