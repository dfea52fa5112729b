// SPDX-License-Identifier: Apache-2.0
// What many figures have in common: the papers' testbed, and what is read off a report.
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

// The ATP paper's: workers and the server on hosts of their own below one switch, 100 Gbit/s, hosts as fast as in its
// figure 19. Sums are verified without the audit lane, which the paper's packets do not have.
[[nodiscard]] sim::Scenario testbed(std::string_view topology);

[[nodiscard]] double milliseconds(Duration duration);
// Of one worker, on average over the jobs.
[[nodiscard]] double goodput_gbps(const sim::Report& report);
[[nodiscard]] double samples_per_s(const sim::Report& report);
// Without the first iteration, in which slots look for aggregators to themselves.
[[nodiscard]] double settled_goodput_gbps(const sim::Report& report);

// Gbit/s over milliseconds.
[[nodiscard]] Line course_of(std::string name, const std::vector<std::uint64_t>& bytes, Duration interval);
// The average of what lies between two places on the x axis.
[[nodiscard]] double average_between(const Line& line, double from, double to);
// By the names of its ends, as the report has them.
[[nodiscard]] std::size_t link_between(const sim::Report& report, std::string_view from, std::string_view to);

}  // namespace atp::figure
