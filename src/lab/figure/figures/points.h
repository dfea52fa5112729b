// SPDX-License-Identifier: Apache-2.0
// Functions that several figures share: the papers' testbed, and values read from a report.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "figure/chart.h"
#include "sim/report.h"
#include "sim/scenario.h"

namespace atp::figure {

inline constexpr double giga = 1e9;

// The testbed of the ATP paper. Workers and the server have hosts of their own below one switch, at 100 Gbit/s; hosts
// are as fast as in the paper's Figure 19. Sums are verified without the audit lane, which the paper's packets lack.
[[nodiscard]] sim::Scenario testbed(std::string_view topology);

// Value of one worker, mean over the jobs.
[[nodiscard]] double goodput_gbps(const sim::Report& report);
[[nodiscard]] double samples_per_s(const sim::Report& report);
// Excludes the first iteration, in which slots search for free aggregators.
[[nodiscard]] double settled_goodput_gbps(const sim::Report& report);

// Gbit/s over milliseconds.
[[nodiscard]] Line course_of(std::string name, const std::vector<std::uint64_t>& bytes, Duration interval);
// Mean of y for x between `from` and `to`.
[[nodiscard]] double average_between(const Line& line, double from, double to);
// Index of the link between two nodes, by their names in the report.
[[nodiscard]] std::size_t link_between(const sim::Report& report, std::string_view from, std::string_view to);

}  // namespace atp::figure
