// SPDX-License-Identifier: Apache-2.0
// ATP's Figure 9: six workers in three racks. The server's switch aggregates its own two workers and the results of the
// other racks' switches, so the server gets one packet per fragment. If each switch serves only its own rack, the
// server gets three.
#include <gtest/gtest.h>

#include "support.h"

namespace atp::sim {
namespace {

Scenario figure9(Aggregation aggregation) {
    Scenario s;
    s.topology = topology("fig9");
    s.bytes = 200'000;
    s.aggregation = aggregation;
    s.linear = true;  // no two slots of the job share an aggregator
    s.window_log2 = 6;
    s.ecn_bytes = 0;
    return s;
}

TEST(Figure9, RackOnlyAggregationSendsTheServerThreeTimesTheTraffic) {
    const Report atp = run_verified(figure9(Aggregation::everywhere));
    const Report racks = run_verified(figure9(Aggregation::racks));
    const std::uint64_t fragments = servers_of(atp).completed;
    EXPECT_EQ(switch_events(atp, ATP_EVENT_COLLIDED), 0U);
    EXPECT_EQ(atp.jobs[0].server.packets, fragments);
    EXPECT_EQ(racks.jobs[0].server.packets, 3 * fragments);
    EXPECT_EQ(racks.jobs[0].server.bytes, 3 * atp.jobs[0].server.bytes);
    EXPECT_DOUBLE_EQ(atp.jobs[0].share_aggregated(), 1.0);
}

TEST(Figure9, WithoutAggregationTheServerReceivesEveryPacket) {
    const Report nowhere = run_verified(figure9(Aggregation::nowhere));
    EXPECT_EQ(nowhere.jobs[0].server.packets, 6 * servers_of(nowhere).completed);
    EXPECT_DOUBLE_EQ(nowhere.jobs[0].share_aggregated(), 0.0);
}

}  // namespace
}  // namespace atp::sim
