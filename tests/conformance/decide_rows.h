// SPDX-License-Identifier: Apache-2.0
// The committed decide.json, read the way an implementation in another language would read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "decide_vectors.h"

namespace atp::conformance {

struct DecideRow {
    DecideVector given;  // without decision and after
    std::string packet_action, lanes_action, event;
    DecideState after;
};
[[nodiscard]] std::vector<DecideRow> committed_rows();

// Of the switch that meets the packet: a flush that is not for here is one of the other level; what lies behind both
// levels meets the last.
[[nodiscard]] std::uint8_t level_of(const DecideVector& given);

// The packet, as it stands behind the UDP header.
[[nodiscard]] std::vector<std::byte> bytes_of(const atp_header& header, const DecideLanes& lanes);

}  // namespace atp::conformance
