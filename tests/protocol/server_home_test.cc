// SPDX-License-Identifier: Apache-2.0
// Sums whose owner stays at home, as a server completes them. hazards/hazard_home_test.cc tests whole networks.
#include <gtest/gtest.h>

#include <cstdint>

#include "protocol/delivery.h"
#include "protocol/server.h"
#include "support/owned_server.h"

namespace atp::protocol {
namespace {

using ServerHome = testing::OwnedServer;

TEST_F(ServerHome, OwnerAtHomeGetsTheIntegersOfAllOthers) {
    bench.handle(testing::make_packet(gradient_for({.owner = 1}, 0), {1, 2}));
    bench.handle(testing::make_packet(gradient_for({.owner = 1}, 2), {10, 20}));
    EXPECT_TRUE(bench.answers().empty());
    bench.handle(ready(0, 1));
    EXPECT_TRUE(bench.answers().empty());
    bench.handle(ready(1, 1));
    const auto answers = bench.answers();
    ASSERT_EQ(answers.size(), 2U);
    EXPECT_EQ(answers[0].header.worker, 1U);
    EXPECT_EQ(answers[0].header.lanes, ATP_INT32_LANES);
    EXPECT_EQ(answers[0].header.flags & ATP_FLAG_WHOLE, 0);
    EXPECT_EQ(answers[0].integers.at(1), 22);
    EXPECT_EQ(answers[1].header.lanes, 0U);
}

TEST_F(ServerHome, AckToAnOwnerWhoseNumbersAreIncludedIsWhole) {
    for (std::uint16_t rank = 0; rank < 3; ++rank) {
        bench.handle(testing::make_packet(gradient_for({.owner = 1}, rank), {1, 2}));
    }
    EXPECT_NE(bench.answers().at(0).header.flags & ATP_FLAG_WHOLE, 0);
}

TEST_F(ServerHome, RefusesAnOwnerAmongOthers) {
    atp_header sum = gradient_for({.owner = 1}, 0);
    sum.bitmap0 = 0b011;
    bench.handle(testing::make_packet(sum, {1, 2}));
    EXPECT_EQ(bench.server.counters().refused, 1U);
    sum.bitmap0 = 0b101;
    bench.handle(testing::make_packet(sum, {1, 2}));
    EXPECT_EQ(bench.server.counters().refused, 1U);
    EXPECT_EQ(bench.server.counters().gradients, 1U);
}

}  // namespace
}  // namespace atp::protocol
