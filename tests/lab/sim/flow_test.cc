// SPDX-License-Identifier: Apache-2.0
// Rates of flows over the models of RDMA and TCP, on links of their own and on shared links.
#include <gtest/gtest.h>

#include "support.h"

namespace atp::sim {
namespace {

using std::chrono::milliseconds;

BackgroundSpec flow_into(unsigned rank, Transport transport = Transport::tcp) {
    BackgroundSpec spec;
    spec.rank = rank;
    spec.inbound = true;
    spec.transport = transport;
    return spec;
}

BackgroundSpec flow_out_of(unsigned rank, Transport transport = Transport::tcp) {
    BackgroundSpec spec = flow_into(rank, transport);
    spec.inbound = false;
    return spec;
}

// Flows, and a shorter ATP job, because a scenario needs a job.
Scenario with_flows(std::vector<BackgroundSpec> flows) {
    Scenario s;
    s.topology = topology("star:2");
    s.bytes = 4000;
    for (BackgroundSpec& flow : flows) flow.lasts = milliseconds(20);
    s.background = std::move(flows);
    return s;
}

double share_of_link(const Scenario& s, const BackgroundReport& flow) {
    return flow.goodput_bits_per_s() / static_cast<double>(s.rate_bits_per_s);
}

class OneFlow : public testing::TestWithParam<Transport> {};

TEST_P(OneFlow, FillsAnIdleLink) {
    const Scenario s = with_flows({flow_into(0, GetParam())});
    const Report report = run_verified(s);
    ASSERT_EQ(report.background.size(), 1U);
    EXPECT_GT(share_of_link(s, report.background[0]), 0.9);
    // the share of payload without headers
    EXPECT_LT(share_of_link(s, report.background[0]), 1460.0 / (1500 - 28 + 66) + 0.001);
}

TEST_P(OneFlow, DeliversWholeMessagesOverALossyLink) {
    Scenario s = with_flows({flow_into(0, GetParam())});
    s.faults.loss = 0.01;
    const Report report = run_verified(s);
    const FlowCounters& flow = report.background[0].flows;
    EXPECT_GT(flow.resent, flow.segments / 200);
    EXPECT_GT(flow.delivered_bytes, 0U);
    EXPECT_EQ(flow.delivered_bytes % 64'000, 0U);  // whole messages
}

TEST_P(OneFlow, SameSeedGivesTheSameReport) {
    Scenario s = with_flows({flow_out_of(0, GetParam()), flow_into(1)});
    s.faults.loss = 0.001;
    EXPECT_EQ(to_json(run(s)), to_json(run(s)));
}

INSTANTIATE_TEST_SUITE_P(Transports, OneFlow, testing::Values(Transport::rdma, Transport::tcp));

TEST(Flows, TwoTcpFlowsShareAndFillALink) {
    const Scenario s = with_flows({flow_into(0), flow_into(0)});
    const Report report = run_verified(s);
    const double first = share_of_link(s, report.background[0]);
    const double second = share_of_link(s, report.background[1]);
    EXPECT_GT(first + second, 0.9);
    EXPECT_NEAR(first / (first + second), 0.5, 0.1);
}

TEST(Flows, TcpHalvesWhenAShortQueueDropsSegments) {
    Scenario s = with_flows({flow_into(0), flow_into(0)});
    s.ecn_bytes = 0;
    s.queue_bytes = 100'000;
    const Report report = run_verified(s);
    EXPECT_GT(report.background[0].flows.resent, 0U);
    EXPECT_GT(report.background[0].flows.halvings, 0U);
    EXPECT_GT(share_of_link(s, report.background[0]) + share_of_link(s, report.background[1]), 0.8);
}

TEST(Flows, LosslessFlowsAreNeverDropped) {
    Scenario s = with_flows({});
    s.topology = topology("star:8");
    s.queue_bytes = 10'000;
    for (unsigned i = 0; i < 4; ++i) {
        s.background.push_back(flow_into(0, Transport::rdma));
        s.background.back().lasts = milliseconds(5);
    }
    const Report report = run_verified(s);
    for (const BackgroundReport& flow : report.background) EXPECT_EQ(flow.flows.resent, 0U);
}

TEST(Flows, SlowTcpCopyingLimitsTheRate) {
    Scenario s = with_flows({flow_into(0)});
    s.tcp_cost = {.bits_per_s = 25'000'000'000};
    const Report report = run_verified(s);
    EXPECT_NEAR(share_of_link(s, report.background[0]), 0.25 * 1460 / 1538, 0.02);
}

TEST(Flows, SlowRdmaCopyingLimitsTheRate) {
    Scenario s = with_flows({flow_into(0, Transport::rdma)});
    s.rdma_cost = {.bits_per_s = 50'000'000'000};
    const Report report = run_verified(s);
    EXPECT_NEAR(share_of_link(s, report.background[0]), 0.5 * 1460 / 1538, 0.02);
}

TEST(Flows, FlowAndJobOfAtpShareAnUplink) {
    Scenario s;
    s.topology = topology("star:4");
    s.bytes = 8'000'000;
    s.background = {flow_out_of(0)};
    const Report alone = run_verified([&] {
        Scenario without = s;
        without.background.clear();
        return without;
    }());
    const Report shared = run_verified(s);
    EXPECT_GT(shared.jobs[0].time(), alone.jobs[0].time() * 5 / 4);
    EXPECT_GT(shared.jobs[0].goodput_bits_per_s(), 0.15 * static_cast<double>(s.rate_bits_per_s));
    EXPECT_GT(share_of_link(s, shared.background[0]), 0.15);
}

}  // namespace
}  // namespace atp::sim
