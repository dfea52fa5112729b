// SPDX-License-Identifier: Apache-2.0
// The numbers behind charts.
#pragma once

#include <span>

#include "figure/chart.h"
#include "figure/table.h"

namespace atp::figure {

// A row for each place on the x axis, a column for each series.
[[nodiscard]] Table table_of(const Chart& chart);
// A row for each number: which chart, which series, where, and what.
[[nodiscard]] Table points_of(std::span<const Chart> charts);

}  // namespace atp::figure
