// SPDX-License-Identifier: Apache-2.0
// The charts of several runs as one, and simulated beside measured curves.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "figure/chart.h"

namespace atp::figure {

// The median of each point, and the interval that the runs span. Of a curve over time, whose points are others in each
// run, the first run's.
[[nodiscard]] std::vector<Chart> merged(const std::vector<std::vector<Chart>>& runs);

// The points at which simulation and measurement differ by more than 15 %, and further than the rounds: one of them has
// a bug. One sentence for each pair of curves, with its largest difference.
[[nodiscard]] std::vector<std::string> gaps_of(std::span<const Chart> charts);

}  // namespace atp::figure
