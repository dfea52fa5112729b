// SPDX-License-Identifier: Apache-2.0
#include "support/pipeline.h"

#include <bit>

#include "pipeline/decide_pipeline.h"
#include "wire/packet.h"

namespace atp::testing {
namespace {

std::uint32_t microseconds(Duration duration) { return static_cast<std::uint32_t>(duration.count() / 1000); }

}  // namespace

Pipeline::Pipeline(const PipelineConfig& config, const protocol::Membership& membership)
    : config_(config), membership_(membership), table_(config.aggregators) {
    for (Aggregator& at : table_) {
        at.words.tag = ATP_TAG_FREE;
        at.lanes.assign(config_.channel.lanes, 0);
    }
}

// Place 1 is level 1, and unit n is place n + 2.
atp_pipeline_place Pipeline::place_of(const atp_header& header) const {
    const protocol::ChannelConfig& channel = config_.channel;
    if (header.job != channel.job || header.token != channel.token || header.channel != channel.channel) return {};
    if (header.hop != config_.level) return {.stream = 1, .place = 0, .mask = 0};
    if (config_.level == 1) return {.stream = 1, .place = 1, .mask = membership_.all_units()};
    if (!std::has_single_bit(header.bitmap1)) return {.stream = 1, .place = 0, .mask = 0};
    const auto unit = static_cast<unsigned>(std::countr_zero(header.bitmap1));
    return {.stream = 1, .place = 2 + unit, .mask = membership_.unit_mask(unit)};
}

Pipeline::Fate Pipeline::handle(Bytes& bytes, bool congested, NextPass& pass, Time now) {
    wire::Packet packet;
    if (wire::decode(bytes, packet) != wire::DecodeError::none) return Fate::absorbed;
    atp_header& header = packet.header;
    if (congested && header.type == ATP_TYPE_GRADIENT) header.flags |= ATP_FLAG_ECN;
    wire::encode_header(header, bytes);
    const Bytes arrived = bytes;
    Aggregator& at = table_.at(header.index);
    atp_pass one{};
    one.kind = pass.kind;
    one.seen = pass.seen;
    one.place = place_of(header);
    one.full_lanes = config_.channel.lanes;
    one.now_us = microseconds(now.time_since_epoch());
    one.ageing_us = microseconds(config_.ageing);
    const auto lanes = static_cast<std::uint32_t>(packet.lane_count());
    const atp_pipeline_outcome outcome = atp_pipeline_pass(&header, lanes, &one, &at.words);
    if (outcome.lanes != ATP_PAIRS_NONE) move_lanes(outcome.lanes, bytes, at);
    wire::encode_header(header, bytes);
    pass = {.kind = outcome.next, .seen = outcome.seen};
    if (outcome.packet == ATP_PIPELINE_RESUBMIT) bytes = arrived;
    if (outcome.packet >= ATP_PIPELINE_RESUBMIT) return Fate::passes_again;
    if (outcome.packet == ATP_PACKET_DROP) return Fate::absorbed;
    return wire::goes_up(header.type) ? Fate::goes_up : Fate::goes_down;
}

void Pipeline::move_lanes(std::uint8_t action, Bytes& bytes, Aggregator& at) const {
    bytes.resize(ATP_HEADER_BYTES + at.lanes.size() * ATP_LANE_BYTES);  // a FLUSH grows
    const bool adds = action == ATP_PAIRS_ADD || action == ATP_PAIRS_ADD_EMIT_UPPER;
    const bool emits_upper = action == ATP_PAIRS_ADD_EMIT_UPPER || action == ATP_PAIRS_EMIT_UPPER;
    for (std::size_t lane = 0; lane < at.lanes.size(); ++lane) {
        std::byte* word = bytes.data() + ATP_HEADER_BYTES + lane * ATP_LANE_BYTES;
        if (action == ATP_PAIRS_STORE) at.lanes[lane] = wire::load_u32(word);
        if (adds) at.lanes[lane] += wire::load_u32(word);
        if (lane % 2 == 0 ? emits_upper : action == ATP_PAIRS_EMIT_LOWER) wire::store_u32(word, at.lanes[lane]);
    }
}

}  // namespace atp::testing
