// SPDX-License-Identifier: Apache-2.0
// Decisions of decide.json: a switch in any language must decide the same and must then hold the same lanes.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/decide.h"

namespace atp::conformance {

using DecideLanes = std::vector<std::int32_t>;

// A packet at a switch and the aggregator that it names. A vector has this state before and after the decision.
struct DecideState {
    atp_header packet{};
    DecideLanes lanes;  // lanes of the packet
    atp_aggregator aggregator{};
    DecideLanes held;  // lanes of the aggregator
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

// All rows. This implementation computes `decision` and `after`: after a change of rules, read the difference of
// decide.json as their test. tests/protocol/decide_test.cc has the rules that no row can hold.
[[nodiscard]] std::vector<DecideVector> decide_vectors();

// Fills `decision` and `after`: calls atp_decide(), then computes the lanes one by one, without vector instructions.
void carry_out(DecideVector& vector);

// Lanes behind those that carry elements: the audit lane or the proof words. `flags`: of an aggregator.
[[nodiscard]] constexpr std::size_t tail_lanes_of(unsigned flags) {
    if ((flags & ATP_AGGREGATOR_PROOF) != 0) return ATP_PROOF_LANES;
    return (flags & ATP_AGGREGATOR_AUDIT) != 0 ? 1 : 0;
}

[[nodiscard]] std::string_view packet_action_name(unsigned action);
[[nodiscard]] std::string_view lanes_action_name(unsigned action);
[[nodiscard]] std::string_view event_name(unsigned event);

// A packet in a row of vectors: without its version, since all rows have the same.
[[nodiscard]] nlohmann::ordered_json packet_to_json(const atp_header& header);
[[nodiscard]] nlohmann::ordered_json to_json(const atp_aggregator& aggregator);
[[nodiscard]] nlohmann::ordered_json to_json(const DecideVector& vector);

}  // namespace atp::conformance
