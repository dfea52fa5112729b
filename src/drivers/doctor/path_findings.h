// SPDX-License-Identifier: Apache-2.0
// Texts and numbers that several checks of a path share.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "doctor/finding.h"
#include "doctor/path_probe.h"
#include "wire/format.h"

namespace atp::doctor {

inline std::string named(std::string_view what, const PathFacts& facts) {
    return fmt::format("{} {}", what, to_string(facts.address));
}

// Whole vectors of 8 lanes, as switches and workers count them.
inline std::uint32_t lanes_of(std::uint32_t payload_bytes) {
    if (payload_bytes <= ATP_HEADER_BYTES) return 0;
    return (payload_bytes - ATP_HEADER_BYTES) / ATP_LANE_BYTES / 8 * 8;
}

// A further problem of the same check.
inline void add(Finding& finding, const std::string& found, const std::string& fix) {
    finding.status = Status::warn;
    finding.found += "; " + found;
    finding.fix += (finding.fix.empty() ? "" : "; ") + fix;
}

}  // namespace atp::doctor
