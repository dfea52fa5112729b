// SPDX-License-Identifier: Apache-2.0
// Reads and writes objects that occur in several files of vectors.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "vector_file.h"
#include "wire/packet.h"

namespace atp::conformance {

[[nodiscard]] inline std::vector<std::byte> bytes_of(const nlohmann::json& vector) {
    return bytes_of(vector.at("hex").get<std::string>(), vector.value("zero_bytes_after_hex", std::size_t{0}));
}

// A row without "version" (all rows of decide.json) has this version.
[[nodiscard]] inline atp_header header_of(const nlohmann::json& fields) {
    atp_header header{};
    header.version = fields.value("version", std::uint8_t{ATP_VERSION});
    fields.at("type").get_to(header.type);
    fields.at("flags").get_to(header.flags);
    fields.at("hop").get_to(header.hop);
    fields.at("lanes").get_to(header.lanes);
    fields.at("window_log2").get_to(header.window_log2);
    fields.at("scale").get_to(header.scale);
    fields.at("job").get_to(header.job);
    fields.at("token").get_to(header.token);
    fields.at("channel").get_to(header.channel);
    fields.at("worker").get_to(header.worker);
    fields.at("seq").get_to(header.seq);
    fields.at("index").get_to(header.index);
    fields.at("argument").get_to(header.argument);
    fields.at("peer").get_to(header.peer);
    fields.at("sending").get_to(header.sending);
    fields.at("part").get_to(header.part);
    fields.at("bitmap0").get_to(header.bitmap0);
    fields.at("mask0").get_to(header.mask0);
    fields.at("bitmap1").get_to(header.bitmap1);
    fields.at("mask1").get_to(header.mask1);
    return header;
}

[[nodiscard]] inline nlohmann::ordered_json to_json(const atp_header& header) {
    return {{"version", header.version}, {"type", header.type},         {"flags", header.flags},
            {"hop", header.hop},         {"lanes", header.lanes},       {"window_log2", header.window_log2},
            {"scale", header.scale},     {"job", header.job},           {"channel", header.channel},
            {"worker", header.worker},   {"token", header.token},       {"seq", header.seq},
            {"index", header.index},     {"argument", header.argument}, {"peer", header.peer},
            {"sending", header.sending}, {"part", header.part},         {"bitmap0", header.bitmap0},
            {"mask0", header.mask0},     {"bitmap1", header.bitmap1},   {"mask1", header.mask1}};
}

}  // namespace atp::conformance
