// SPDX-License-Identifier: Apache-2.0
// When a server fetches with FLUSH what switches hold. hazards/hazard_progress_test.cc tests whole networks.
#include <gtest/gtest.h>

#include "protocol/server.h"
#include "support/server_bench.h"

namespace atp::protocol {
namespace {

using testing::ServerBench;

TEST(ServerFetch, CollisionFlushesTheAggregatorOfItsUnitOnce) {
    ServerBench bench(*Membership::star(3));
    bench.handle(bench.gradient(0, 0, 1, ATP_FLAG_COLLISION | ATP_FLAG_BYPASS));
    const auto answers = bench.answers();
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].header.type, ATP_TYPE_FLUSH);
    EXPECT_EQ(answers[0].header.hop, 0);
    EXPECT_EQ(answers[0].header.index, bench.channel.index(0, 0));
    EXPECT_EQ(answers[0].transmit.units, 0x1U);
    bench.handle(bench.gradient(1, 0, 1, ATP_FLAG_COLLISION | ATP_FLAG_BYPASS));
    EXPECT_TRUE(bench.answers().empty());
}

// docs/spec/hazards.md#h91: the aggregator may have been another job's when the first FLUSH arrived.
TEST(ServerFetch, H91_AChoiceToPassTheSwitchFetchesTheOthersOnceAndACollisionAgain) {
    ServerBench bench(*Membership::star(4));
    bench.handle(bench.gradient(0, 0, 1, ATP_FLAG_BYPASS));
    const auto answers = bench.answers();
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].header.type, ATP_TYPE_FLUSH);
    EXPECT_EQ(answers[0].header.hop, 0);
    EXPECT_EQ(answers[0].header.bitmap0, 0xEU);
    bench.handle(bench.gradient(1, 0, 1, ATP_FLAG_BYPASS));
    EXPECT_TRUE(bench.answers().empty());
    bench.handle(bench.gradient(2, 0, 1, ATP_FLAG_COLLISION | ATP_FLAG_BYPASS));
    const auto later = bench.answers();
    ASSERT_EQ(later.size(), 1U);
    EXPECT_EQ(later[0].header.type, ATP_TYPE_FLUSH);
    EXPECT_EQ(later[0].header.bitmap0, 0x8U);
}

TEST(ServerFetch, NeitherAResendNorASwitchThatPassedAGradientFlushesItsUnit) {
    ServerBench bench(*Membership::star(3));
    bench.handle(bench.gradient(0, 0, 1, ATP_FLAG_RESEND));
    EXPECT_TRUE(bench.answers().empty());
    atp_header passed = testing::gradient_of(bench.channel, bench.members, 1, 0);
    passed.flags |= ATP_FLAG_BYPASS;
    passed.hop = 1;
    bench.handle(testing::make_packet(passed, {1, -1}));
    EXPECT_TRUE(bench.answers().empty());
}

TEST(ServerFetch, BypassOrResendFlushesLevelOneOnce) {
    ServerBench bench(*Membership::racks(3, 2));
    bench.handle(bench.members_gradient(0, 0x3, 0, 1, ATP_FLAG_BYPASS));
    bench.handle(bench.members_gradient(1, 0x1, 0, 1, ATP_FLAG_RESEND));
    const auto answers = bench.answers();
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].header.type, ATP_TYPE_FLUSH);
    EXPECT_EQ(answers[0].header.hop, 1);
    EXPECT_EQ(answers[0].transmit.units, 0x7U);
}

}  // namespace
}  // namespace atp::protocol
