// SPDX-License-Identifier: Apache-2.0
// The model checker: visits every state that a configuration can reach, and checks the invariants in each.
#pragma once

#include <string>
#include <vector>

#include "check/configuration.h"
#include "check/report.h"

namespace atp::check {

// Explores the shipped state machines. Threads: any; calls share no state.
namespace shipped {
[[nodiscard]] Report explore(const Configuration& configuration, const Limits& limits);
// Executes a trace from the initial state. Returns the violation, an empty text, or "cannot follow" if the trace does
// not fit.
[[nodiscard]] std::string replay(const Configuration& configuration, const std::vector<TraceStep>& trace);
}  // namespace shipped

// Explores the state machines with one injected fault. `active_break`: position in the list of protocol/breaks.h, from
// 1; 0: none.
namespace breakable {
[[nodiscard]] Report explore(const Configuration& configuration, const Limits& limits, unsigned active_break);
[[nodiscard]] std::string replay(const Configuration& configuration, const std::vector<TraceStep>& trace,
                                 unsigned active_break);
}  // namespace breakable

}  // namespace atp::check
