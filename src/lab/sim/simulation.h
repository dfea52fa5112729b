// SPDX-License-Identifier: Apache-2.0
// The simulator's front door.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "sim/report.h"
#include "sim/scenario.h"
#include "sim/trace.h"

namespace atp::sim {

struct RunOptions {
    Trace* trace = nullptr;
    const std::atomic<bool>* stop = nullptr;  // set by whoever lost patience: the report then says interrupted
    // Called now and then with the share of the work that is done, 0 to 1.
    std::function<void(double)> progress;
};

// Runs the scenario to its end. It must have no problem_of(). The report depends on the scenario alone.
[[nodiscard]] Report run(const Scenario& scenario, const RunOptions& options = {});

}  // namespace atp::sim
