// SPDX-License-Identifier: Apache-2.0
#include "policy/blind_resends.h"

#include <gtest/gtest.h>

#include "support/worker_bench.h"

namespace atp::policy {
namespace {

using testing::WorkerBench;

TEST(BlindResends, ProbesOfATimerBecomeResendsOfTheirFragments) {
    protocol::WorkerConfig config = WorkerBench::default_config();
    config.probe_burst = 2;
    WorkerBench bench(config);
    ASSERT_TRUE(bench.submit_fragments(3).has_value());
    (void)bench.packets();
    bench.expire();
    for (auto& packet : bench.packets()) {
        ASSERT_TRUE(turn_probe_into_nack(packet.bytes));
        bench.handle(packet.bytes);
    }
    const auto packets = bench.packets();
    ASSERT_EQ(packets.size(), 2U) << "as many as the worker asks for";
    for (std::uint32_t seq = 0; seq < 2; ++seq) {
        EXPECT_TRUE(packets[seq].has(ATP_FLAG_RESEND));
        EXPECT_FALSE(packets[seq].has(ATP_FLAG_BYPASS));
        EXPECT_EQ(packets[seq].header.seq, seq);
    }
    EXPECT_EQ(bench.worker.counters().resent, 2U);
    EXPECT_EQ(bench.worker.counters().refused, 0U);
}

TEST(BlindResends, OtherPacketsAndFragmentsOfOneSenderStayAsTheyAre) {
    WorkerBench bench;
    ASSERT_TRUE(bench.submit_fragments(1).has_value());
    for (auto& packet : bench.packets()) EXPECT_FALSE(turn_probe_into_nack(packet.bytes));
    bench.expire();
    for (auto& packet : bench.packets()) {
        ASSERT_TRUE(packet.is(ATP_TYPE_PROBE));
        atp_header header = packet.header;
        header.flags |= ATP_FLAG_ONE_SENDER;
        header.peer = 0;
        wire::encode_header(header, packet.bytes);
        EXPECT_FALSE(turn_probe_into_nack(packet.bytes));
        EXPECT_FALSE(turn_probe_into_nack(std::span(packet.bytes).first(8)));
    }
}

}  // namespace
}  // namespace atp::policy
