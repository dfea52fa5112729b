// SPDX-License-Identifier: Apache-2.0
// Reads the committed decide.json like an implementation in another language.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "decide_vectors.h"

namespace atp::conformance {

struct DecideRow {
    DecideVector given;  // `decision` and `after` are empty
    std::string packet_action, lanes_action, event;
    DecideState after;
};
[[nodiscard]] std::vector<DecideRow> committed_rows();

// Level of the switch that decides: the hop of the packet, with two exceptions. A FLUSH that is not for this switch has
// the other level as its hop. A packet with the hop of the server is at the switch of level 1.
[[nodiscard]] std::uint8_t level_of(const DecideVector& given);

// The packet as the payload of a UDP datagram.
[[nodiscard]] std::vector<std::byte> bytes_of(const atp_header& header, const DecideLanes& lanes);

}  // namespace atp::conformance
