// SPDX-License-Identifier: Apache-2.0
// The rows of decide.json, decided by a pipeline: its passes, and what it holds and sends after them.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "decide_vectors.h"
#include "pipeline/decide_pipeline.h"

namespace atp::conformance {

// A packet at a pipeline and the aggregator that it names.
struct PipelineState {
    atp_header packet{};
    DecideLanes lanes;  // lanes of the packet
    atp_pipeline_words words{};
    DecideLanes held;  // lanes of the aggregator
};

struct PipelinePass {
    std::uint8_t kind = ATP_PASS_FIRST;  // enum atp_pass_kind
    std::uint32_t seen = 0;
    atp_pipeline_outcome outcome{};
    std::uint32_t accesses = 0;  // of each cell, four bits each
};

struct PipelineVector {
    DecideVector row;  // of decide.json, with what atp_decide() does
    std::uint32_t full_lanes = 0;
    atp_pipeline_place place{};
    PipelineState before;
    std::vector<PipelinePass> passes;
    PipelineState after;

    [[nodiscard]] std::uint8_t packet_action() const { return passes.back().outcome.packet; }
    [[nodiscard]] std::uint8_t event() const;  // of the pass that has one besides PASSED
    // Action, packet and lanes are those of atp_decide().
    [[nodiscard]] bool same() const;
};

// All rows. The lanes of the fragment are those of the pipeline, except in rows about other numbers of lanes.
[[nodiscard]] std::vector<PipelineVector> decide_pipeline_vectors();

// Makes all passes of the packet: fills `passes` and `after`.
void make_passes(PipelineVector& vector);

// Moves lanes as a pipeline does: even lanes are the upper words of its registers, odd lanes the lower words.
void move_pairs(std::uint8_t action, DecideLanes& packet, DecideLanes& held);
[[nodiscard]] nlohmann::ordered_json to_json(const PipelineVector& vector);

}  // namespace atp::conformance
