// SPDX-License-Identifier: Apache-2.0
// Floats of a narrow fragment at the server, in several packets.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "support/server_bench.h"

namespace atp::testing {
namespace {

using protocol::Membership;
using Values = std::vector<float>;

TEST(ServerFloats, H54_MemberIsIncludedWhenAllItsPacketsAreIn) {
    std::vector<unsigned> order{0, 1, 2, 3};
    do {
        ServerBench bench(*Membership::star(1));
        for (const unsigned packet : order) {
            EXPECT_TRUE(bench.answers().empty()) << packet << " is missing";
            atp_header header = gradient_of(bench.channel, bench.members, 0, 0);
            header.lanes = atp_lanes_of(ATP_DTYPE_INT8, ATP_DTYPE_FLOAT32);
            header.flags |= ATP_FLAG_BYPASS | (packet == 3 ? ATP_FLAG_LAST_RANK : 0);
            header.part = static_cast<std::uint8_t>(packet << ATP_PART_PACKET_SHIFT);
            const auto value = static_cast<float>(packet);
            for (int copies = 0; copies < 2; ++copies) {
                bench.handle(make_float_packet(header, {value + 0.5F, packet == 3 ? 1e30F : value}));
            }
        }
        const std::vector<ServerAnswer> answers = bench.answers();
        ASSERT_EQ(answers.size(), 4U) << "the result has as many packets";
        for (unsigned packet = 0; packet < 4; ++packet) {
            EXPECT_EQ(answers[packet].header.part, packet << ATP_PART_PACKET_SHIFT);
            EXPECT_EQ(answers[packet].header.lanes, atp_lanes_of(ATP_DTYPE_INT8, ATP_DTYPE_FLOAT32));
        }
        EXPECT_EQ(answers[1].sums, (Values{2, 1})) << "integers where there is one, as in other forms";
        EXPECT_EQ(answers[3].sums, (Values{4, 1e30F}));
    } while (std::ranges::next_permutation(order).found);
}

// Only the last packet of the last rank is named as such, so a full packet of another rank may be the last one, too.
TEST(ServerFloats, H54_PacketsOfSeveralRanksArriveInAnyOrder) {
    std::vector<unsigned> order{0, 1, 2, 3};
    do {
        ServerBench bench(*Membership::star(1));
        for (const unsigned number : order) {
            EXPECT_TRUE(bench.answers().empty()) << number << " is missing";
            atp_header header = gradient_of(bench.channel, bench.members, 0, 0);
            header.lanes = atp_lanes_of(ATP_DTYPE_INT16, ATP_DTYPE_FLOAT32);
            header.flags |= ATP_FLAG_BYPASS | (number == 3 ? ATP_FLAG_LAST_RANK : 0);
            header.part = static_cast<std::uint8_t>((number % 2) << ATP_PART_PACKET_SHIFT | (number / 2 + 1));
            bench.handle(make_float_packet(header, {1, 2}));
        }
        EXPECT_EQ(bench.server.counters().mismatched, 0U);
        const std::vector<ServerAnswer> answers = bench.answers();
        ASSERT_EQ(answers.size(), 2U);
        for (const ServerAnswer& answer : answers) EXPECT_EQ(answer.sums, (Values{2, 4}));
    } while (std::ranges::next_permutation(order).found);
}

TEST(ServerFloats, H54_PacketsOfDifferentSizesAreMismatched) {
    const auto floats = [](const ServerBench& bench, std::uint16_t rank, unsigned packet, const Values& values,
                           bool last) {
        atp_header header = gradient_of(bench.channel, bench.members, rank, 0);
        header.lanes = atp_lanes_of(ATP_DTYPE_INT8, ATP_DTYPE_FLOAT32);
        header.flags |= ATP_FLAG_BYPASS | (last ? ATP_FLAG_LAST_RANK : 0);
        header.part = static_cast<std::uint8_t>(packet << ATP_PART_PACKET_SHIFT);
        return make_float_packet(header, values);
    };
    struct Case {
        Bytes first, second;
        bool differs;
    };
    const ServerBench any(*Membership::star(2));
    for (const auto& [first, second, differs] :
         {Case{floats(any, 0, 1, {1, 1}, false), floats(any, 1, 0, {1, 1}, true), true},
          Case{floats(any, 0, 0, {1, 1}, true), floats(any, 1, 1, {1, 1}, false), true},
          Case{floats(any, 0, 1, {1, 1}, true), floats(any, 1, 1, {1, 1}, false), false},
          Case{floats(any, 0, 1, {1}, false), floats(any, 1, 1, {1, 1}, true), true},
          Case{floats(any, 0, 1, {1, 1}, true), floats(any, 1, 0, {1, 1}, false), false},
          Case{floats(any, 0, 0, {1, 1}, false), floats(any, 1, 3, {1}, true), false}}) {
        ServerBench bench(*Membership::star(2));
        bench.handle(first);
        bench.handle(second);
        EXPECT_EQ(bench.server.counters().mismatched, differs ? 1U : 0U);
    }
}

// A record serves every fragment at a distance of 2W. The sum of a short one empties only as many elements.
TEST(ServerFloats, SumsOfEarlierFragmentsInTheSameRecordDoNotCount) {
    ServerBench bench(*Membership::star(1));
    const std::uint32_t records = 2 * bench.channel.window();
    for (std::uint32_t seq = 0; seq < 3 * records; ++seq) {
        const Values values = seq / records == 1 ? Values{5} : Values{3, 1e30F};
        atp_header header = gradient_of(bench.channel, bench.members, 0, seq);
        header.lanes = atp_lanes_of(ATP_DTYPE_INT32, ATP_DTYPE_FLOAT32);
        header.flags |= ATP_FLAG_BYPASS;
        bench.handle(make_float_packet(header, values));
        const std::vector<ServerAnswer> answers = bench.answers();
        ASSERT_EQ(answers.size(), 1U) << seq;
        EXPECT_EQ(answers[0].sums, values) << seq;
    }
}

}  // namespace
}  // namespace atp::testing
