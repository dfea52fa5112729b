// SPDX-License-Identifier: Apache-2.0
// What the server does with values that integers do not hold, and with audit lanes.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "support/server_bench.h"

namespace atp::protocol {
namespace {

using testing::ServerBench;
using Sums = std::vector<float>;

class ServerValues : public ::testing::Test {
  protected:
    ServerBench bench{*Membership::star(3)};
};

TEST_F(ServerValues, AfterOverflowOneNackWithBypassGoesToAllWorkers) {
    bench.handle(bench.members_gradient(0, 0x7, 0, 12345, ATP_FLAG_OVERFLOW));
    const auto answers = bench.answers();
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].header.type, ATP_TYPE_NACK);
    EXPECT_EQ(answers[0].header.lanes, ATP_DTYPE_INT32);
    EXPECT_NE(answers[0].header.flags & ATP_FLAG_BYPASS, 0);
    EXPECT_EQ(answers[0].header.worker, ATP_WORKER_ALL);
    EXPECT_EQ(answers[0].header.bitmap0, 0x7U);
    bench.handle(bench.members_gradient(0, 0x7, 0, 12345, ATP_FLAG_OVERFLOW));
    EXPECT_TRUE(bench.answers().empty());

    for (std::uint16_t rank = 0; rank < 3; ++rank) {
        bench.handle(bench.gradient(rank, 0, 2'000'000'000, ATP_FLAG_BYPASS | ATP_FLAG_RESEND));
    }
    EXPECT_EQ(bench.answers().at(0).sums, (Sums{6e9F, -6e9F}));
    EXPECT_EQ(bench.server.counters().overflowed, 2U);
}

TEST_F(ServerValues, ContributionsBeforeAnOverflowAreKept) {
    bench.handle(bench.gradient(1, 0, 5, ATP_FLAG_BYPASS));
    bench.handle(bench.members_gradient(0, 0x5, 0, 1, ATP_FLAG_OVERFLOW));
    const auto answers = bench.answers();
    ASSERT_FALSE(answers.empty());
    EXPECT_EQ(answers.back().header.bitmap0, 0x5U) << "the gradient of worker 1 stays included, so it receives no NACK";
    bench.handle(bench.gradient(0, 0, 1, ATP_FLAG_BYPASS | ATP_FLAG_RESEND));
    bench.handle(bench.gradient(2, 0, 1, ATP_FLAG_BYPASS | ATP_FLAG_RESEND));
    EXPECT_EQ(bench.answers().at(0).sums, (Sums{7, -7}));
}

TEST_F(ServerValues, AfterFloatsOfOneWorkerAllOthersAreAskedForFloats) {
    bench.handle(bench.gradient(1, 0, 5));
    bench.handle(bench.floats(0, 0, 1e30F));
    const auto answers = bench.answers();
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].header.type, ATP_TYPE_NACK);
    EXPECT_EQ(answers[0].header.lanes, ATP_DTYPE_FLOAT32);
    EXPECT_NE(answers[0].header.flags & ATP_FLAG_BYPASS, 0);
    EXPECT_EQ(answers[0].header.bitmap0, 0x6U);
    bench.handle(bench.floats(2, 0, -1e30F));
    bench.handle(bench.floats(1, 0, 0.5F));
    EXPECT_EQ(bench.answers().at(0).sums, (Sums{0.5F, 0.5F})) << "the sum is exact: 1e30 - 1e30 is 0";
    EXPECT_EQ(bench.server.counters().float_fragments, 1U);
}

TEST_F(ServerValues, IntegersAfterFloatsGetTheRequestAgain) {
    bench.handle(bench.floats(0, 0, 1e30F));
    (void)bench.answers();
    bench.handle(bench.gradient(1, 0, 7));
    const auto answers = bench.answers();
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].header.type, ATP_TYPE_NACK);
    EXPECT_EQ(answers[0].header.lanes, ATP_DTYPE_FLOAT32);
    EXPECT_EQ(answers[0].header.bitmap0, 0x2U) << "worker 2 received its NACK within this interval";
    EXPECT_EQ(bench.server.base(), 0U);
}

TEST_F(ServerValues, PartialSumAfterFloatsRequestsAllItsMembers) {
    bench.handle(bench.floats(0, 0, 1e30F));
    (void)bench.answers();
    bench.handle(bench.members_gradient(0, 0x6, 0, 7));
    EXPECT_EQ(bench.answers().at(0).header.bitmap0, 0x6U);
}

TEST_F(ServerValues, FloatsOfSeveralWorkersInOnePacketAreRefused) {
    testing::Bytes bytes = bench.floats(0, 0, 1);
    wire::store_u32(&bytes[ATP_OFFSET_BITMAP0], 0x3);
    bench.handle(bytes);
    EXPECT_EQ(bench.server.counters().refused, 1U);
}

TEST_F(ServerValues, ProbeInFloatModeGetsARequestForFloats) {
    bench.handle(bench.floats(0, 0, 1e30F));
    (void)bench.answers();
    bench.now += std::chrono::milliseconds(1);
    bench.handle(bench.probe(1, 0));
    const auto answers = bench.answers();
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].header.type, ATP_TYPE_NACK);
    EXPECT_EQ(answers[0].header.lanes, ATP_DTYPE_FLOAT32);
}

// --- the audit lane

TEST(ServerAudit, SumWithAWrongAuditLaneIsDroppedAndCounted) {
    ChannelConfig channel = ServerBench::default_channel();
    channel.audit = true;
    ServerBench bench(*Membership::star(2), channel);
    const auto audited = [&](std::uint16_t rank, std::uint32_t error) {
        testing::Bytes bytes = bench.gradient(rank, 0, 5);
        wire::store_u32(&bytes[ATP_HEADER_BYTES + ATP_LANE_BYTES], channel.audit_of(0, rank) + error);
        return bytes;
    };
    bench.handle(audited(0, 1));
    EXPECT_EQ(bench.server.counters().audit_failures, 1U);
    bench.handle(audited(0, 0));
    bench.handle(audited(1, 0));
    const auto answer = bench.answers().at(0);
    EXPECT_EQ(answer.sums.at(0), 10.0F);
    EXPECT_EQ(static_cast<std::uint32_t>(answer.integers.back()),
              channel.result_audit_of(0, 0) + channel.result_audit_of(0, 1))
        << "a result names those who are in it";
}

TEST(ServerAudit, PacketWithoutTheAuditLaneIsRefused) {
    ChannelConfig channel = ServerBench::default_channel();
    channel.audit = true;
    ServerBench bench(*Membership::star(2), channel);
    testing::Bytes bytes = bench.gradient(0, 0, 5);
    wire::store_u16(&bytes[ATP_OFFSET_FLAGS], 0);
    bench.handle(bytes);
    EXPECT_EQ(bench.server.counters().refused, 1U);
}

}  // namespace
}  // namespace atp::protocol
