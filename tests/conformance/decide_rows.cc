// SPDX-License-Identifier: Apache-2.0
#include "decide_rows.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "json_fields.h"
#include "vector_file.h"
#include "wire/packet.h"

namespace atp::conformance {
namespace {

using nlohmann::json;

atp_aggregator aggregator_of(const json& fields) {
    atp_aggregator aggregator{};
    fields.at("job").get_to(aggregator.job);
    fields.at("token").get_to(aggregator.token);
    fields.at("seq").get_to(aggregator.seq);
    fields.at("channel").get_to(aggregator.channel);
    fields.at("status").get_to(aggregator.status);
    fields.at("bitmap").get_to(aggregator.bitmap);
    fields.at("lanes").get_to(aggregator.lanes);
    fields.at("flags").get_to(aggregator.flags);
    fields.at("purpose").get_to(aggregator.purpose);
    fields.at("unit").get_to(aggregator.unit);
    fields.at("touched_us").get_to(aggregator.touched_us);
    return aggregator;
}

DecideState state_of(const json& fields) {
    return {.packet = header_of(fields.at("packet")),
            .lanes = fields.at("lanes").get<DecideLanes>(),
            .aggregator = aggregator_of(fields.at("aggregator")),
            .held = fields.at("held").get<DecideLanes>()};
}

}  // namespace

std::vector<DecideRow> committed_rows() {
    std::vector<DecideRow> rows;
    for (const json& fields : json::parse(committed_text("decide.json"))) {
        DecideRow row;
        fields.at("description").get_to(row.given.description);
        fields.at("now_us").get_to(row.given.now_us);
        fields.at("ageing_us").get_to(row.given.ageing_us);
        fields.at("flush_here").get_to(row.given.flush_here);
        row.given.before = state_of(fields.at("before"));
        fields.at("packet_action").get_to(row.packet_action);
        fields.at("lanes_action").get_to(row.lanes_action);
        fields.at("event").get_to(row.event);
        row.after = state_of(fields.at("after"));
        rows.push_back(row);
    }
    return rows;
}

std::uint8_t level_of(const DecideVector& given) {
    const atp_header& packet = given.before.packet;
    const bool elsewhere = packet.type == ATP_TYPE_FLUSH && !given.flush_here;
    return static_cast<std::uint8_t>(elsewhere ? 1U - packet.hop : std::min<unsigned>(packet.hop, ATP_LEVELS - 1));
}

std::vector<std::byte> bytes_of(const atp_header& header, const DecideLanes& lanes) {
    std::vector<std::byte> bytes(ATP_HEADER_BYTES + lanes.size() * ATP_LANE_BYTES);
    wire::encode_header(header, bytes);
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
        wire::store_u32(&bytes[ATP_HEADER_BYTES + lane * ATP_LANE_BYTES], static_cast<std::uint32_t>(lanes[lane]));
    }
    return bytes;
}

}  // namespace atp::conformance
