// SPDX-License-Identifier: Apache-2.0
// Entry point of the simulator.
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
    const std::atomic<bool>* stop = nullptr;  // the caller sets it to stop the run: the report then has `interrupted`
    // Called from time to time with the share of the work that is done, 0 to 1.
    std::function<void(double)> progress;
};

// Runs the scenario to its end. Requires problem_of(scenario) to be empty. The report depends on the scenario only.
[[nodiscard]] Report run(const Scenario& scenario, const RunOptions& options = {});

}  // namespace atp::sim
