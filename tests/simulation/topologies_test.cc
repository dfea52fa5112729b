// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support.h"

namespace atp::sim {
namespace {

class Stars : public testing::TestWithParam<unsigned> {};

TEST_P(Stars, EveryNumberOfWorkersOfOneSwitchSums) {
    Scenario s;
    s.topology = {.shape = TopologySpec::Shape::star, .first = GetParam(), .second = 1};
    s.bytes = 20'000;
    s.aggregators = 1U << 16U;
    const Report report = run_verified(s);
    EXPECT_EQ(report.jobs[0].workers, GetParam());
    EXPECT_GT(report.jobs[0].share_aggregated(), GetParam() == 1 ? -0.01 : 0.99);
}

INSTANTIATE_TEST_SUITE_P(OneToThirtyTwo, Stars, testing::Range(1U, 33U));

class Shapes : public testing::TestWithParam<const char*> {};

TEST_P(Shapes, SumsWithTheServerInEveryPlace) {
    for (const ServerPlace place : {ServerPlace::on_switch, ServerPlace::dedicated, ServerPlace::colocated}) {
        Scenario s;
        s.topology = topology(GetParam());
        s.server = place;
        s.bytes = 20'000;
        s.aggregators = 1U << 16U;
        const Report report = run_verified(s);
        EXPECT_GT(report.jobs[0].share_aggregated(), 0.95) << GetParam() << " " << static_cast<int>(place);
    }
}

TEST_P(Shapes, SumsWhereSwitchesOnlyForward) {
    Scenario s;
    s.topology = topology(GetParam());
    s.bytes = 20'000;
    s.aggregation = Aggregation::nowhere;
    const Report report = run_verified(s);
    EXPECT_DOUBLE_EQ(report.jobs[0].share_aggregated(), 0.0);
}

TEST_P(Shapes, SumsForSeveralJobsAndChannels) {
    for (const Placement placement : {Placement::shared, Placement::separate}) {
        Scenario s;
        s.topology = topology(GetParam());
        s.placement = placement;
        s.bytes = 20'000;
        s.jobs = 3;
        s.channels = 2;
        s.tensors = 3;
        s.iterations = 2;
        s.pause = std::chrono::microseconds(50);
        run_verified(s);
    }
}

INSTANTIATE_TEST_SUITE_P(All, Shapes,
                         testing::Values("star:5", "racks:1x4", "racks:4x1", "racks:3x4", "dumbbell:3x2", "fig9"));

TEST(Topologies, AThousandWorkersInTwoLevelsSum) {
    Scenario s;
    s.topology = topology("racks:32x32");
    s.bytes = 2'000;
    s.aggregators = 1U << 14U;
    const Report report = run_verified(s);
    EXPECT_EQ(report.jobs[0].workers, 1024U);
    EXPECT_GT(report.jobs[0].share_aggregated(), 0.99);
}

TEST(Topologies, MoreUnitsThanABitmapHoldsAreRefusedInWords) {
    Scenario s;
    s.topology = topology("racks:32x32");
    s.server = ServerPlace::colocated;  // 32 workers beside the server and 31 racks
    const auto problem = problem_of(s);
    ASSERT_TRUE(problem.has_value());
    EXPECT_NE(problem->find("32 units"), std::string::npos) << *problem;
}

TEST(Topologies, TheServersTrafficShrinksByTheNumberOfWorkers) {
    Scenario s;
    s.topology = topology("star:8");
    s.bytes = 50'000;
    s.aggregators = 1U << 16U;
    const std::uint64_t with = run_verified(s).jobs[0].server_packets;
    s.aggregation = Aggregation::nowhere;
    EXPECT_EQ(run_verified(s).jobs[0].server_packets, 8 * with);
}

}  // namespace
}  // namespace atp::sim
