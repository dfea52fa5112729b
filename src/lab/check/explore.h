// SPDX-License-Identifier: Apache-2.0
// The model checker: visits every state that a configuration can reach, and checks the invariants in each.
#pragma once

#include <string>
#include <vector>

#include "check/configuration.h"
#include "check/report.h"

namespace atp::check {

// Explores the shipped state machines. Threads: any thread may call; calls share no state.
namespace shipped {
[[nodiscard]] Report explore(const Configuration& configuration, const Limits& limits);
// Executes a trace from the initial state, then a healed run. Returns the violation, or an empty text if there is none,
// or "cannot follow" if a step of the trace is impossible.
[[nodiscard]] std::string replay(const Configuration& configuration, const std::vector<TraceStep>& trace);
}  // namespace shipped

// Explores the state machines with one injected fault. `active_break`: position of the fault in the list of
// breaks_table.h, counted from 1; 0: no fault.
namespace breakable {
[[nodiscard]] Report explore(const Configuration& configuration, const Limits& limits, unsigned active_break);
[[nodiscard]] std::string replay(const Configuration& configuration, const std::vector<TraceStep>& trace,
                                 unsigned active_break);
}  // namespace breakable

}  // namespace atp::check
