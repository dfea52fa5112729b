// SPDX-License-Identifier: Apache-2.0
// Decisions of decide.json: every switch in any language must decide the same and hold the same lanes afterwards.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/decide.h"

namespace atp::conformance {

using DecideLanes = std::vector<std::int32_t>;

// A packet at a switch and the aggregator that it names. A vector has this state before and after the decision.
struct DecideState {
    atp_header packet{};
    DecideLanes lanes;  // of the packet
    atp_aggregator aggregator{};
    DecideLanes held;  // of the aggregator
};

struct DecideVector {
    std::string description;
    DecideState before;
    std::uint32_t now_us = 0;
    std::uint32_t ageing_us = 0;
    bool flush_here = false;
    atp_decision decision{};
    DecideState after;
};

// `decision` and `after` are those of this implementation; decide_test.cc checks the meaning of each row.
[[nodiscard]] std::vector<DecideVector> decide_vectors();

// Decides, computes the lanes in plain arithmetic, and fills `decision` and `after`.
void carry_out(DecideVector& vector);

[[nodiscard]] std::string_view packet_action_name(unsigned action);
[[nodiscard]] std::string_view lanes_action_name(unsigned action);
[[nodiscard]] std::string_view event_name(unsigned event);

// The text of decide.json: an array with one vector per line, so that a diff shows the changed vectors.
[[nodiscard]] std::string decide_vectors_to_json(const std::vector<DecideVector>& vectors);

}  // namespace atp::conformance
