// SPDX-License-Identifier: Apache-2.0
// The model checker: visits every state that a configuration can reach, and judges each.
#pragma once

#include <string>
#include <vector>

#include "check/configuration.h"
#include "check/report.h"

namespace atp::check {

// Over the machines as they ship. Any thread; each call keeps its own state.
namespace shipped {
[[nodiscard]] Report explore(const Configuration& configuration, const Limits& limits);
// Carries out a trace from the initial state. What broke, or an empty text; "cannot follow" when it does not fit.
[[nodiscard]] std::string replay(const Configuration& configuration, const std::vector<TraceStep>& trace);
}  // namespace shipped

// Over the machines with one deliberate mistake: its position in the list of protocol/breaks.h, from 1; 0 is none.
namespace breakable {
[[nodiscard]] Report explore(const Configuration& configuration, const Limits& limits, unsigned active_break);
[[nodiscard]] std::string replay(const Configuration& configuration, const std::vector<TraceStep>& trace,
                                 unsigned active_break);
}  // namespace breakable

}  // namespace atp::check
