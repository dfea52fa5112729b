// SPDX-License-Identifier: Apache-2.0
// The text that `atp stats` prints for a report.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "client/switch_report.h"

namespace atp::apps {

// Packets of all threads by outcome, and traffic, by name.
using StatsTotals = std::map<std::string, std::uint64_t>;

[[nodiscard]] StatsTotals totals_of(const client::SwitchReport& report);

// `before`: totals of a report that is `seconds` older, for rates; 0: no rates.
[[nodiscard]] std::string stats_text(const client::SwitchReport& report, const StatsTotals& before, double seconds);

}  // namespace atp::apps
