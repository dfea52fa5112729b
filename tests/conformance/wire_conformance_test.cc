// SPDX-License-Identifier: Apache-2.0
// Checks wire/packet.h against the committed wire.json, which the test reads like an implementation in another
// language.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "json_fields.h"
#include "vector_file.h"
#include "wire/packet.h"
#include "wire_vectors.h"

namespace atp::conformance {
namespace {

using nlohmann::json;
using Bytes = std::vector<std::byte>;

json committed() { return json::parse(committed_text("wire.json")); }

std::vector<std::uint32_t> lanes_of(const wire::Packet& packet) {
    std::vector<std::uint32_t> lanes;
    for (std::size_t at = 0; at < packet.lanes.size(); at += ATP_LANE_BYTES) {
        lanes.push_back(wire::load_u32(packet.lanes.data() + at));
    }
    return lanes;
}

TEST(WireVectors, EveryVectorDecodesToItsFields) {
    for (const json& vector : committed()) {
        SCOPED_TRACE(vector.at("description").get<std::string>());
        Bytes bytes = bytes_of(vector);
        wire::Packet packet;
        const wire::DecodeError error = wire::decode(bytes, packet);
        ASSERT_EQ(wire::to_string(error), vector.value("error", "none"));
        if (error != wire::DecodeError::none) continue;
        EXPECT_EQ(json(to_json(packet.header)), vector.at("header"));
        auto lanes = vector.at("lanes").get<std::vector<std::uint32_t>>();
        lanes.resize(vector.at("lane_count").get<std::size_t>());
        EXPECT_EQ(lanes_of(packet), lanes);
    }
}

TEST(WireVectors, EveryHeaderEncodesToTheBytesInTheFile) {
    for (const json& vector : committed()) {
        if (vector.contains("error")) continue;
        SCOPED_TRACE(vector.at("description").get<std::string>());
        const Bytes expected = bytes_of(vector);
        Bytes actual = expected;
        std::fill_n(actual.begin(), ATP_HEADER_BYTES, std::byte{0xEE});
        wire::encode_header(header_of(vector.at("header")), actual);
        EXPECT_EQ(actual, expected);
    }
}

TEST(WireVectors, EveryHeaderPrintsTheTextInTheFile) {
    for (const json& vector : committed()) {
        if (vector.contains("error")) continue;
        const auto lane_count = vector.at("lane_count").get<std::size_t>();
        EXPECT_EQ(wire::to_string(header_of(vector.at("header")), lane_count), vector.at("text").get<std::string>());
    }
}

TEST(WireVectors, VectorsCoverEveryTypeFlagDtypeAndDecodeError) {
    std::set<unsigned> types;
    std::set<unsigned> dtypes;
    std::set<unsigned> lone_flags;
    std::set<std::string> errors;
    for (const json& vector : committed()) {
        errors.insert(vector.value("error", "none"));
        if (vector.contains("error")) continue;
        const atp_header header = header_of(vector.at("header"));
        types.insert(header.type);
        dtypes.insert(atp_lanes_type(&header));
        lone_flags.insert(header.flags);
    }
    for (unsigned type = 1; type <= ATP_TYPE_LAST; ++type) EXPECT_TRUE(types.contains(type)) << type;
    for (unsigned dtype = 0; dtype <= ATP_DTYPE_LAST; ++dtype) EXPECT_TRUE(dtypes.contains(dtype)) << dtype;
    for (unsigned flag = 1; flag <= ATP_FLAG_ALL; flag <<= 1u) EXPECT_TRUE(lone_flags.contains(flag)) << flag;
    for (std::size_t error = 0; error < wire::decode_error_count; ++error) {
        const std::string name{wire::to_string(static_cast<wire::DecodeError>(error))};
        EXPECT_TRUE(errors.contains(name)) << name;
    }
}

TEST(WireVectors, FileMatchesTheOutputOfItsWriter) {
    // No EXPECT_EQ: it would print both files. `write_wire_vectors
    // diff tests/conformance/wire.json -` shows the changes.
    EXPECT_TRUE(committed_text("wire.json") == text_of(wire_vectors()))
        << "tests/conformance/wire.json is not what write_wire_vectors writes";
}

// `write_wire_vectors --corpus tests/fuzz/corpus/decode` writes the inputs.
TEST(WireVectors, EveryShortVectorIsAnInputOfTheFuzzer) {
    EXPECT_THAT(outdated_inputs("decode", corpus_of(fuzzer_vectors())), testing::IsEmpty());
}

}  // namespace
}  // namespace atp::conformance
