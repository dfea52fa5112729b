// SPDX-License-Identifier: Apache-2.0
// The numbers of charts as tables.
#pragma once

#include <span>

#include "figure/chart.h"
#include "figure/table.h"

namespace atp::figure {

// One row per x value, one column per series.
[[nodiscard]] Table table_of(const Chart& chart);
// One row per number: chart, series, position and value.
[[nodiscard]] Table points_of(std::span<const Chart> charts);

}  // namespace atp::figure
