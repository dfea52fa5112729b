// SPDX-License-Identifier: Apache-2.0
// The switch in user space and the rule that divides a table, against the committed slice.json.
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "control/table_slices.h"
#include "protocol/switch.h"
#include "slice_vectors.h"
#include "support/gradients.h"
#include "support/packets.h"
#include "vector_file.h"

namespace atp::conformance {
namespace {

using nlohmann::json;

atp_range range_of(const json& pair) { return {pair.at(0).get<std::uint32_t>(), pair.at(1).get<std::uint32_t>()}; }

// Sends the gradient of one of two members, and frees its aggregator again.
std::optional<std::uint32_t> place_of(protocol::Switch& machine, const json& step, std::uint8_t window_log2) {
    protocol::ChannelConfig channel{.job = 1,
                                    .token = 0x5eed,
                                    .channel = step.at("channel").get<std::uint16_t>(),
                                    .lanes = 1,
                                    .window_log2 = window_log2};
    const auto membership = *protocol::Membership::star(2);
    atp_header header = testing::gradient_of(channel, membership, 0, step.at("seq").get<std::uint32_t>());
    header.index = step.at("index").get<std::uint32_t>();
    const auto send = [&] {
        testing::Bytes bytes = testing::make_packet(header, {1});
        const auto size = static_cast<std::uint32_t>(bytes.size());
        protocol::PacketBuffer buffer{.data = bytes.data(), .size = size, .capacity = size, .verdict = {}};
        machine.handle_packet(buffer, Time{});
    };
    send();
    std::optional<std::uint32_t> found;
    for (std::uint32_t place = 0; place < machine.config().aggregators; ++place) {
        if (machine.aggregator(place).status != ATP_AGGREGATOR_FREE) found = place;
    }
    machine.clear();
    return found;
}

TEST(SliceVectors, SwitchFindsTheAggregatorsOfTheFile) {
    for (const json& row : json::parse(committed_text("slice.json"))) {
        if (!row.contains("steps")) continue;
        SCOPED_TRACE(row.at("description").get<std::string>());
        protocol::Switch machine({.aggregators = row.at("aggregators").get<std::uint32_t>(), .lanes = 1, .jobs = 1});
        ASSERT_TRUE(machine.admit(1, 0x5eed, 0));
        for (const json& step : row.at("steps")) {
            if (step.contains("slice")) {
                machine.set_slice(1, 0x5eed, range_of(step.at("slice")), 1);
            } else if (step.contains("end")) {
                machine.end_changes();
            } else {
                const auto place = place_of(machine, step, row.at("window_log2").get<std::uint8_t>());
                EXPECT_EQ(place ? json(*place) : json(nullptr), step.at("place")) << step.dump();
            }
        }
    }
}

TEST(SliceVectors, RuleDividesTheTableAsTheFile) {
    for (const json& row : json::parse(committed_text("slice.json"))) {
        if (!row.contains("claims")) continue;
        std::vector<control::SliceClaim> claims;
        for (const json& claim : row.at("claims")) {
            claims.push_back({claim.at("least").get<std::uint64_t>(), claim.at("weight").get<std::uint32_t>()});
        }
        const auto size =
            row.at("powers_of_two").get<bool>() ? control::SliceSize::power_of_two : control::SliceSize::any;
        json slices = json::array();
        for (const atp_range& slice : control::slices_of(row.at("aggregators").get<std::uint32_t>(), claims, size)) {
            slices.push_back({slice.base, slice.size});
        }
        EXPECT_EQ(slices, row.at("slices")) << row.at("description");
    }
}

TEST(SliceVectors, FileMatchesTheOutputOfItsWriter) {
    EXPECT_TRUE(committed_text("slice.json") == text_of(slice_vectors()))
        << "if this is intended, run write_slice_vectors > tests/conformance/slice.json";
}

}  // namespace
}  // namespace atp::conformance
