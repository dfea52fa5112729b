// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "sim/tenant_keys.h"
#include "support.h"

namespace atp::sim {
namespace {

class Stars : public testing::TestWithParam<unsigned> {};

TEST_P(Stars, EveryNumberOfWorkersIsAggregated) {
    Scenario s;
    s.topology = {.shape = TopologySpec::Shape::star, .first = GetParam(), .second = 1};
    s.bytes = 20'000;
    s.linear = true;  // no two slots share an aggregator
    const Report report = run_verified(s);
    EXPECT_EQ(report.jobs[0].workers, GetParam());
    EXPECT_GT(report.jobs[0].share_aggregated(), GetParam() == 1 ? -0.01 : 0.99);
}

INSTANTIATE_TEST_SUITE_P(OneToThirtyTwo, Stars, testing::Range(1U, 33U));

class Shapes : public testing::TestWithParam<const char*> {};

TEST_P(Shapes, EveryServerPlacementIsAggregated) {
    for (const ServerPlacement place :
         {ServerPlacement::on_switch, ServerPlacement::dedicated, ServerPlacement::colocated}) {
        Scenario s;
        s.topology = topology(GetParam());
        s.server = place;
        s.bytes = 20'000;
        s.aggregators = 1U << 16U;
        const Report report = run_verified(s);
        EXPECT_GT(report.jobs[0].share_aggregated(), 0.95) << GetParam() << " " << static_cast<int>(place);
    }
}

TEST_P(Shapes, SwitchesThatOnlyForwardLeaveSumsExact) {
    Scenario s;
    s.topology = topology(GetParam());
    s.bytes = 20'000;
    s.aggregation = Aggregation::nowhere;
    const Report report = run_verified(s);
    EXPECT_DOUBLE_EQ(report.jobs[0].share_aggregated(), 0.0);
}

TEST_P(Shapes, SeveralJobsAndChannelsSumExactly) {
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

TEST(Topologies, ThousandWorkersInTwoLevelsAreAggregated) {
    Scenario s;
    s.topology = topology("racks:32x32");
    s.bytes = 2'000;
    s.aggregators = 1U << 14U;
    const Report report = run_verified(s);
    EXPECT_EQ(report.jobs[0].workers, 1024U);
    EXPECT_GT(report.jobs[0].share_aggregated(), 0.99);
}

TEST(Topologies, SlowUplinksSlowWhatSwitchesOnlyForward) {
    Scenario s;
    s.topology = topology("racks:2x2");
    s.aggregation = Aggregation::nowhere;
    const Duration usual = run_verified(s).jobs[0].time();
    s.uplink_bits_per_s = s.rate_bits_per_s / 8;
    EXPECT_GT(run_verified(s).jobs[0].time(), 4 * usual);
}

TEST(Topologies, MoreUnitsThanABitmapHoldsAreRefused) {
    Scenario s;
    s.topology = topology("racks:32x32");
    s.server = ServerPlacement::colocated;  // 32 workers next to the server, and 31 racks
    const auto problem = problem_of(s);
    ASSERT_TRUE(problem.has_value());
    EXPECT_NE(problem->find("32 units"), std::string::npos) << *problem;
}

TEST(Scenarios, TimeoutsWithoutLengthOrOrderAreRefused) {
    using std::chrono::milliseconds;
    const struct {
        milliseconds least, greatest;
    } refused[] = {{milliseconds(0), milliseconds(1)},
                   {milliseconds(0), milliseconds(0)},
                   {milliseconds(1), milliseconds(0)},
                   {milliseconds(2), milliseconds(1)}};
    Scenario s;
    for (const auto& [least, greatest] : refused) {
        s.min_timeout = least;
        s.max_timeout = greatest;
        const auto problem = problem_of(s);
        ASSERT_TRUE(problem.has_value()) << least.count() << " " << greatest.count();
        EXPECT_NE(problem->find("timeouts"), std::string::npos) << *problem;
    }
    s.min_timeout = s.max_timeout = milliseconds(1);
    EXPECT_FALSE(problem_of(s).has_value());
}

TEST(Scenarios, TensorOfMoreFragmentsThanSequenceNumbersIsRefused) {
    Scenario s;
    s.lanes = 2;  // one for the audit
    s.bytes = sizeof(float) << 32U;
    EXPECT_TRUE(problem_of(s).has_value());
    s.bytes -= sizeof(float);
    EXPECT_FALSE(problem_of(s).has_value());
    s.bytes = sizeof(float) << 33U;
    s.channels = 4;
    EXPECT_FALSE(problem_of(s).has_value()) << "each channel counts for itself";
}

TEST(Topologies, AggregationDividesTheServersPacketsByTheNumberOfWorkers) {
    Scenario s;
    s.topology = topology("star:8");
    s.bytes = 50'000;
    s.linear = true;  // no two slots share an aggregator
    const std::uint64_t with = run_verified(s).jobs[0].server.packets;
    s.aggregation = Aggregation::nowhere;
    EXPECT_EQ(run_verified(s).jobs[0].server.packets, 8 * with);
}

// --------------------------------------------------------------------------------------------- Switches in the path

Scenario in_path(const char* shape, ServerPlacement server) {
    Scenario s;
    s.topology = topology(shape);
    s.server = server;
    s.in_path = true;
    s.bytes = 100'000;
    s.iterations = 3;
    s.pause = std::chrono::milliseconds(2);
    s.aggregators = 1U << 16U;
    return s;
}

TEST(PathSwitches, OfAllLevelsAddWhatPasses) {
    for (const char* const shape : {"star:4", "racks:2x3", "dumbbell:3x2", "fig9"}) {
        const Report report = run_verified(in_path(shape, ServerPlacement::dedicated));
        EXPECT_GT(report.jobs[0].share_aggregated(), 0.9) << shape;
        EXPECT_LT(report.jobs[0].server.packets, 1.1 * static_cast<double>(report.jobs[0].server.completed)) << shape;
        for (const SwitchReport& at : report.switches) {
            if (at.name.front() != 's') continue;
            EXPECT_GT(at.counters.events[ATP_EVENT_COMPLETED], 0U) << shape << at.name;
        }
    }
}

TEST(PathSwitches, BelowASwitchWithAnAddressAddForTheirRacks) {
    const Report report = run_verified(in_path("racks:3x2", ServerPlacement::on_switch));
    for (const SwitchReport& at : report.switches) EXPECT_GT(at.counters.events[ATP_EVENT_COMPLETED], 0U) << at.name;
}

TEST(PathSwitches, AnswerFlushesAmongLossesAndRestarts) {
    Scenario s = in_path("racks:2x3", ServerPlacement::dedicated);
    s.overflow_share = 0.2;
    s.faults.loss = 0.02;
    s.faults.reorder = 0.1;
    s.faults.outages = {{.kind = Outage::Kind::crash, .index = 0, .at = Time(std::chrono::microseconds(60))},
                        {.kind = Outage::Kind::kill, .index = 2, .at = Time(std::chrono::microseconds(80))}};
    const Report report = run_verified(s);
    EXPECT_EQ(report.jobs[0].incarnations, 1U);
    EXPECT_GT(switch_events(report, ATP_EVENT_FLUSHED), 0U);
}

TEST(PathSwitches, NeedAServerBehindThem) {
    Scenario s = in_path("star:4", ServerPlacement::colocated);
    EXPECT_NE(problem_of(s).value_or("").find("--server colocated"), std::string::npos);
}

// -------------------------------------------------------------------------------------------------------------- Groups

// A job of some seconds in two racks of three, whose results come from elsewhere.
Scenario long_job() {
    Scenario s = in_path("racks:2x3", ServerPlacement::dedicated);
    s.bytes = 20'000;
    s.iterations = 40;
    s.pause = std::chrono::milliseconds(100);
    s.faults.loss = 0.001;
    return s;
}

// Packets a result on the server's link and on those from the upper switch to the racks. One for each worker: 12.
double packets_a_result(const Report& report) {
    std::uint64_t packets = 0;
    for (const LinkReport& link : report.links) {
        if (link.from == "p0" || (link.from == "s2" && link.to != "p0")) packets += link.counters.packets;
    }
    return static_cast<double>(packets) / static_cast<double>(report.jobs[0].server.completed);
}

// A switch sends to a group if all of its children are ranks that have proven to receive it.
TEST(Groups, ResultsCrossEachLinkOnce) {
    Scenario s = long_job();
    s.groups = true;
    EXPECT_LT(packets_a_result(run_verified(s)), 5);
}

TEST(PathSwitches, H108_CopyResultsSoThatTheyCrossEachLinkOnce) {
    EXPECT_LT(packets_a_result(run_verified(long_job())), 5);
}

TEST(PathSwitches, H108_ThatEndLeaveEachWorkerItsOwnCopy) {
    Scenario s = long_job();
    s.faults.outages = {{.kind = Outage::Kind::kill,
                         .index = 0,
                         .at = Time(std::chrono::seconds(2)),
                         .lasts = std::chrono::seconds(10)}};
    const Report report = run_verified(s);
    EXPECT_EQ(report.jobs[0].incarnations, 1U);
    EXPECT_GT(packets_a_result(report), 5) << "of the second half, each worker of the rack gets its own";
    EXPECT_LT(report.jobs[0].worker.probes, report.jobs[0].server.completed / 2) << "and it comes unasked";
}

// ---------------------------------------------------------------------------------------------------------------- Keys

TEST(Keys, EachJobIsATenantAtEverySwitch) {
    for (const ServerPlacement server : {ServerPlacement::on_switch, ServerPlacement::colocated}) {
        Scenario s = in_path("racks:2x3", server);
        s.in_path = false;
        s.jobs = 2;
        s.placement = Placement::shared;
        s.keys = true;
        const Report shared = run_verified(s);
        s.keys = false;
        const Report open = run_verified(s);
        // JOIN and JOINED have codes.
        const auto bytes = [](const Report& report) {
            std::uint64_t sum = 0;
            for (const LinkReport& link : report.links) sum += link.counters.bytes;
            return sum;
        };
        EXPECT_GT(bytes(shared), bytes(open));
        for (const JobReport& job : shared.jobs) EXPECT_EQ(job.incarnations, 1U);
    }
}

TEST(Keys, AreThoseOfTheJobsAndOfTheSwitches) {
    Scenario s;
    EXPECT_EQ(key_of_job(s, 0), nullptr);
    EXPECT_EQ(tenants_of(s, "s0"), nullptr);
    s.keys = true;
    s.jobs = 2;
    const auto tenants = tenants_of(s, "s0");
    EXPECT_EQ(tenants->switch_name(), "s0");
    for (unsigned job = 0; job < s.jobs; ++job) {
        const auto found = tenants->find(key_of_job(s, job)->id);
        ASSERT_TRUE(found);
        EXPECT_EQ(found->tenant->name, key_of_job(s, job)->tenant);
        EXPECT_FALSE(found->tenant->fabric);
    }
    EXPECT_TRUE(tenants->find(key_of_switches(s)->id)->tenant->fabric);
}

}  // namespace
}  // namespace atp::sim
