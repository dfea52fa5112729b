// SPDX-License-Identifier: Apache-2.0
// Checks switchml/packet.h against the committed switchml.json, which the test reads like an implementation in another
// language.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "json_fields.h"
#include "switchml/packet.h"
#include "switchml_vectors.h"
#include "vector_file.h"

namespace atp::conformance {
namespace {

namespace format = atp::switchml;
using nlohmann::json;
using Bytes = std::vector<std::byte>;

json committed() { return json::parse(committed_text("switchml.json")); }

format::Header header_of(const json& vector) {
    const json& fields = vector.at("header");
    return {.flags = fields.at("flags").get<std::uint8_t>(),
            .job = fields.at("job").get<std::uint8_t>(),
            .worker = fields.at("worker").get<std::uint8_t>(),
            .slot = fields.at("slot").get<std::uint16_t>(),
            .offset = fields.at("offset").get<std::uint32_t>()};
}

std::vector<std::uint32_t> lanes_of(const format::Packet& packet) {
    std::vector<std::uint32_t> lanes;
    for (std::size_t at = 0; at < packet.lanes.size(); at += packet.header.lane_bytes()) {
        const std::byte* lane = packet.lanes.data() + at;
        lanes.push_back(packet.header.halves() ? wire::load_u16(lane) : wire::load_u32(lane));
    }
    return lanes;
}

TEST(SwitchMlVectors, EveryVectorDecodesToItsFields) {
    for (const json& vector : committed()) {
        SCOPED_TRACE(vector.at("description").get<std::string>());
        Bytes bytes = bytes_of(vector);
        format::Packet packet;
        const format::DecodeError error = format::decode(bytes, packet);
        ASSERT_EQ(format::to_string(error), vector.value("error", "none"));
        if (error != format::DecodeError::none) continue;
        EXPECT_EQ(packet.header, header_of(vector));
        EXPECT_EQ(lanes_of(packet), vector.at("lanes").get<std::vector<std::uint32_t>>());
        EXPECT_EQ(packet.lane_count(), vector.at("lanes").size());
    }
}

TEST(SwitchMlVectors, EveryHeaderEncodesToTheBytesInTheFile) {
    for (const json& vector : committed()) {
        if (vector.contains("error")) continue;
        SCOPED_TRACE(vector.at("description").get<std::string>());
        const Bytes expected = bytes_of(vector);
        Bytes actual = expected;
        std::fill_n(actual.begin(), format::header_bytes, std::byte{0xEE});
        format::encode_header(header_of(vector), actual);
        EXPECT_EQ(actual, expected);
    }
}

TEST(SwitchMlVectors, EveryHeaderPrintsTheTextInTheFile) {
    for (const json& vector : committed()) {
        if (vector.contains("error")) continue;
        EXPECT_EQ(format::to_string(header_of(vector), vector.at("lanes").size()),
                  vector.at("text").get<std::string>());
    }
}

TEST(SwitchMlVectors, VectorsCoverEveryFlagAndEveryDecodeErrorExceptOversized) {
    std::set<unsigned> flags;
    std::set<std::string> errors;
    for (const json& vector : committed()) {
        errors.insert(vector.value("error", "none"));
        if (!vector.contains("error")) flags.insert(header_of(vector).flags);
    }
    for (unsigned flag = 1; flag <= format::all_flags; flag <<= 1U) EXPECT_TRUE(flags.contains(flag)) << flag;
    errors.insert(std::string(format::to_string(format::DecodeError::oversized)));
    EXPECT_EQ(errors.size(), format::decode_error_count);
}

TEST(SwitchMlVectors, PacketOfThePaperHas180BytesOnTheWire) {
    for (const json& vector : committed()) {
        if (vector.at("description") != "32 lanes, as the paper has them") continue;
        EXPECT_EQ(format::lower_header_bytes + bytes_of(vector).size(), 180U);
        return;
    }
    FAIL() << "no vector of switchml.json is the packet of the paper";
}

TEST(SwitchMlVectors, FileMatchesTheOutputOfItsWriter) {
    EXPECT_TRUE(committed_text("switchml.json") == text_of(switchml_vectors()))
        << "tests/conformance/switchml.json is not what write_switchml_vectors writes";
}

// `write_switchml_vectors --corpus tests/fuzz/corpus/switchml` writes the inputs.
TEST(SwitchMlVectors, EveryVectorIsAnInputOfTheFuzzer) {
    EXPECT_THAT(outdated_inputs("switchml", corpus_of(switchml_vectors())), testing::IsEmpty());
}

TEST(SwitchMlPacket, MoreLanesThanADatagramHoldsAreRefused) {
    Bytes bytes(format::header_bytes + format::max_lane_bytes);
    format::encode_header({}, bytes);
    format::Packet packet;
    EXPECT_EQ(format::decode(bytes, packet), format::DecodeError::none);
    bytes.resize(bytes.size() + format::int32_lane_bytes);
    EXPECT_EQ(format::decode(bytes, packet), format::DecodeError::oversized);
}

}  // namespace
}  // namespace atp::conformance
