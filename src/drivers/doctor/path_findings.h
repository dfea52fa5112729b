// SPDX-License-Identifier: Apache-2.0
// Texts and numbers that several checks of a path share.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "control/path_mtu_search.h"
#include "doctor/check_table.h"
#include "doctor/finding.h"
#include "doctor/path_probe.h"

namespace atp::doctor {

inline std::string named(CheckName check, const PathFacts& facts) {
    return fmt::format("{} {}", name_of(check), to_string(facts.address));
}

// That the path carries.
inline std::uint32_t lanes_of(const PathFacts& facts) {
    return control::usual_lanes(control::lanes_of_payload(facts.found_payload_bytes));
}

// A further problem of the same check.
inline void add(Finding& finding, const std::string& found, const std::string& fix) {
    finding.status = Status::warn;
    finding.found += "; " + found;
    finding.fix += (finding.fix.empty() ? "" : "; ") + fix;
}

}  // namespace atp::doctor
