// SPDX-License-Identifier: Apache-2.0
#include "decide_pipeline_vectors.h"

#include <array>
#include <bit>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

namespace atp::conformance {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 5> action_names = {"drop", "forward", "return", "resubmit", "recirculate"};
constexpr std::array<std::string_view, 6> pairs_names = {"none",           "store",      "add",
                                                         "add_emit_upper", "emit_upper", "emit_lower"};
constexpr std::array<std::string_view, 7> pass_names = {"first",   "claim", "expire", "fetch",
                                                        "harvest", "take",  "return"};

constexpr std::uint32_t own_stream = 1;
constexpr std::uint32_t other_stream = 2;
constexpr std::uint32_t lanes_of_most_rows = 3;
constexpr std::uint32_t lanes_with_proof = 6;

// Place 1 is level 1; unit n of level 0 is place n + 2.
std::uint32_t place_of_unit(std::uint32_t unit) {
    return unit == 0 ? 1 : 2 + static_cast<std::uint32_t>(std::countr_zero(unit));
}

// What the control plane admitted: the job of the packet, with all members of its unit or all of its units.
atp_pipeline_place place_at(const DecideVector& row) {
    const atp_header& packet = row.before.packet;
    const bool elsewhere = packet.type == ATP_TYPE_FLUSH && !row.flush_here;
    const bool served = packet.hop < ATP_LEVELS && !elsewhere && (packet.hop == 1 || packet.bitmap1 != 0);
    const std::uint32_t unit = packet.hop == 0 ? packet.bitmap1 : 0;
    return {.stream = own_stream, .place = served ? place_of_unit(unit) : 0, .mask = packet.hop == 0 ? 0xFU : 0x7U};
}

bool same_stream(const atp_aggregator& aggregator, const atp_header& packet) {
    return aggregator.job == packet.job && aggregator.token == packet.token && aggregator.channel == packet.channel;
}

// The state of the aggregator as a pipeline keeps it.
atp_pipeline_words words_of(const atp_aggregator& aggregator, const atp_header& packet) {
    atp_header identity{};
    identity.seq = aggregator.seq;
    identity.argument = aggregator.purpose;
    identity.flags = atp_packet_flags_of(&aggregator, ATP_AGGREGATOR_KIND);
    const std::uint32_t tag = atp_tag_of(&identity, same_stream(aggregator, packet) ? own_stream : other_stream);
    atp_pipeline_words words{};
    words.tag = ATP_TAG_FREE;
    if (aggregator.status == ATP_AGGREGATOR_FREE) {
        if (aggregator.token == 0) return words;
        words.tomb = tag;
        words.tomb_seq = aggregator.seq;
        return words;
    }
    words.tag = tag;
    words.body = atp_body_of(&identity, place_of_unit(aggregator.unit));
    words.bitmap = aggregator.bitmap;
    words.touched_us = aggregator.touched_us;
    words.marks = atp_packet_flags_of(&aggregator, ATP_AGGREGATOR_MARKS);
    return words;
}

Json to_json(const atp_pipeline_words& words) {
    return Json{{"tomb", words.tomb},     {"tomb_seq", words.tomb_seq},     {"tag", words.tag},    {"body", words.body},
                {"bitmap", words.bitmap}, {"touched_us", words.touched_us}, {"marks", words.marks}};
}

Json to_json(const PipelineState& state) {
    return Json{{"packet", packet_to_json(state.packet)},
                {"lanes", state.lanes},
                {"words", to_json(state.words)},
                {"held", state.held}};
}

Json to_json(const PipelinePass& pass) {
    return Json{{"kind", pass_names.at(pass.kind)},
                {"seen", pass.seen},
                {"packet_action", action_names.at(pass.outcome.packet)},
                {"lanes_action", pairs_names.at(pass.outcome.lanes)},
                {"event", event_name(pass.outcome.event)}};
}

}  // namespace

nlohmann::ordered_json to_json(const PipelineVector& vector) {
    Json passes = Json::array();
    for (const PipelinePass& pass : vector.passes) passes.push_back(to_json(pass));
    return Json{
        {"description", vector.row.description},
        {"same", vector.same()},
        {"full_lanes", vector.full_lanes},
        {"now_us", vector.row.now_us},
        {"ageing_us", vector.row.ageing_us},
        {"place", {{"stream", vector.place.stream}, {"place", vector.place.place}, {"mask", vector.place.mask}}},
        {"before", to_json(vector.before)},
        {"passes", passes},
        {"after", to_json(vector.after)}};
}

std::uint8_t PipelineVector::event() const {
    for (const PipelinePass& pass : passes) {
        if (pass.outcome.event != ATP_EVENT_PASSED) return pass.outcome.event;
    }
    return ATP_EVENT_PASSED;
}

bool PipelineVector::same() const {
    if (packet_action() != row.decision.packet) return false;
    if (packet_action() == ATP_PACKET_DROP) return true;
    return packet_to_json(after.packet) == packet_to_json(row.after.packet) && after.lanes == row.after.lanes;
}

void move_pairs(std::uint8_t action, DecideLanes& packet, DecideLanes& held) {
    if (action == ATP_PAIRS_NONE) return;
    if (action == ATP_PAIRS_STORE) {
        held = packet;
        return;
    }
    const bool adds = action == ATP_PAIRS_ADD || action == ATP_PAIRS_ADD_EMIT_UPPER;
    const std::size_t emitted = action == ATP_PAIRS_ADD ? 2 : action == ATP_PAIRS_EMIT_LOWER ? 1 : 0;
    packet.resize(held.size());
    for (std::size_t lane = 0; lane < held.size(); ++lane) {
        if (adds) {
            held[lane] = static_cast<std::int32_t>(static_cast<std::uint32_t>(held[lane]) +
                                                   static_cast<std::uint32_t>(packet[lane]));
        }
        if (lane % 2 == emitted) packet[lane] = held[lane];
    }
}

void make_passes(PipelineVector& vector) {
    PipelineState& state = vector.after = vector.before;
    PipelinePass pass;
    for (;;) {
        atp_pass at{};
        at.kind = pass.kind;
        at.seen = pass.seen;
        at.place = vector.place;
        at.full_lanes = vector.full_lanes;
        at.now_us = vector.row.now_us;
        at.ageing_us = vector.row.ageing_us;
        pass.outcome =
            atp_pipeline_pass(&state.packet, static_cast<std::uint32_t>(state.lanes.size()), &at, &state.words);
        pass.accesses = at.accesses;
        move_pairs(pass.outcome.lanes, state.lanes, state.held);
        vector.passes.push_back(pass);
        const std::uint8_t action = pass.outcome.packet;
        if (action != ATP_PIPELINE_RESUBMIT && action != ATP_PIPELINE_RECIRCULATE) return;
        if (action == ATP_PIPELINE_RESUBMIT) state.packet = vector.before.packet;
        pass = {.kind = pass.outcome.next, .seen = pass.outcome.seen, .outcome = {}, .accesses = 0};
    }
}

std::vector<PipelineVector> decide_pipeline_vectors() {
    std::vector<PipelineVector> vectors;
    for (DecideVector& row : decide_vectors()) {
        PipelineVector vector;
        const bool proof = (row.before.packet.flags & ATP_FLAG_PROOF) != 0 ||
                           (row.before.aggregator.flags & ATP_AGGREGATOR_PROOF) != 0;
        vector.full_lanes = proof ? lanes_with_proof : lanes_of_most_rows;
        vector.place = place_at(row);
        vector.before.packet = row.before.packet;
        vector.before.lanes = row.before.lanes;
        vector.before.words = words_of(row.before.aggregator, row.before.packet);
        vector.before.held = row.before.held;
        vector.before.held.resize(vector.full_lanes);
        vector.row = std::move(row);
        make_passes(vector);
        vectors.push_back(std::move(vector));
    }
    return vectors;
}

}  // namespace atp::conformance
