// SPDX-License-Identifier: Apache-2.0
// Variants of ATP for comparison: other methods to choose aggregators, and to handle overflows.
#include <gtest/gtest.h>

#include "support.h"

namespace atp::sim {
namespace {

// As many aggregators as slots of all jobs, so that only the assignment of aggregators decides on collisions.
Scenario eight_jobs() {
    Scenario s;
    s.topology = topology("star:4");
    s.jobs = 8;
    s.bytes = 200'000;
    s.window_log2 = 6;
    s.aggregators = 8U << s.window_log2;
    return s;
}

double share_in_network(const Report& report) {
    double share = 0;
    for (const JobReport& job : report.jobs) share += job.share_aggregated() / static_cast<double>(report.jobs.size());
    return share;
}

TEST(Policies, LinearIndicesCollideMoreThanHashedOnes) {
    Scenario s = eight_jobs();
    const double hashed = share_in_network(run_verified(s));
    s.linear = true;
    EXPECT_LT(share_in_network(run_verified(s)), hashed);
}

TEST(Policies, PartitionedTableHasNoCollisions) {
    Scenario s = eight_jobs();
    s.partition = true;
    s.linear = true;
    const Report report = run_verified(s);
    EXPECT_EQ(switch_events(report, ATP_EVENT_COLLIDED), 0U);
    EXPECT_GT(share_in_network(report), 0.999);
}

TEST(Policies, TooSmallPartitionDelaysAJobWithoutCollisions) {
    Scenario s = eight_jobs();
    s.partition = true;
    s.linear = true;
    const Report whole = run_verified(s);
    s.aggregators = s.jobs * 3;  // rounded down to a power of two
    const Report small = run_verified(s);
    EXPECT_EQ(switch_events(small, ATP_EVENT_COLLIDED), 0U);
    EXPECT_GT(finished_ms(small), 1.2 * finished_ms(whole));
}

TEST(Policies, PartitionWithFewerAggregatorsThanJobsIsRefused) {
    Scenario s = eight_jobs();
    s.partition = true;
    s.aggregators = 7;
    EXPECT_NE(problem_of(s).value_or("").find("8 jobs"), std::string::npos);
}

// The gradients of one worker collide, those of the other come later and claim free aggregators: no switch can complete
// such a fragment. Nothing is lost, so no worker sends again or halves its window.
TEST(Policies, H109_FragmentsOfWhichOnlyAPartCollidesCostNoResends) {
    Scenario s;
    s.topology = topology("star:2");
    s.start_spread = std::chrono::microseconds(30);
    s.bytes = 4'000'000;
    s.window_log2 = 10;
    s.most_packets = 256;
    s.aggregators = 32;
    const Report report = run_verified(s);
    EXPECT_GT(switch_events(report, ATP_EVENT_COLLIDED), 1000U);
    EXPECT_LT(report.jobs[0].worker.resent, 20U);
    EXPECT_EQ(report.jobs[0].worker.halvings, 0U);
}

TEST(Policies, ProactiveModeBypassesTheSwitchInsteadOfOverflows) {
    Scenario s;
    s.topology = topology("star:4");
    s.overflow_share = 0.05;
    const Report proactive = run_verified(s);
    s.reactive = true;
    const Report reactive = run_verified(s);
    EXPECT_GT(reactive.switches[0].counters.overflows, 0U);
    EXPECT_EQ(proactive.switches[0].counters.overflows, 0U);
    EXPECT_GT(switch_events(proactive, ATP_EVENT_BYPASSED), 0U);
    EXPECT_GT(servers_of(reactive).overflowed, 0U);
    EXPECT_EQ(servers_of(proactive).overflowed, 0U);
}

TEST(Policies, ProactiveModeAddsSmallValuesAtTheSwitch) {
    Scenario s;
    s.topology = topology("star:4");
    EXPECT_EQ(switch_events(run_verified(s), ATP_EVENT_BYPASSED), 0U);
}

// Two numbers: packets that proactive workers send with BYPASS, because an element exceeds 2^31 / workers; and
// fragments that overflow in the same run with reactive workers.
std::pair<std::uint64_t, std::uint64_t> bypassed_and_overflowed(unsigned workers, const LogNormal& gradients) {
    Scenario s;
    s.topology = {.shape = TopologySpec::Shape::star, .first = workers, .second = 1};
    s.gradients = gradients;
    s.seed = 3;
    const std::uint64_t bypassed = workers_of(run_verified(s)).bypassed;
    s.reactive = true;
    return {bypassed, servers_of(run_verified(s)).overflowed};
}

TEST(Policies, ProactiveModeBypassesMorePacketsForMoreWorkers) {
    constexpr LogNormal gradients{.median = 0.05, .spread = 1.4};
    std::uint64_t before = 0;
    for (const unsigned workers : {4U, 8U, 16U}) {
        const auto [bypassed, overflowed] = bypassed_and_overflowed(workers, gradients);
        EXPECT_GT(bypassed, 2 * before) << workers;
        EXPECT_LT(overflowed * workers, bypassed) << workers;
        before = bypassed;
    }
    EXPECT_GT(before, 0U);
}

// One worker is slow and no packet is lost: probes leave the sums in the switch, resends remove them.
TEST(Policies, BlindResendsMovePartialSumsToTheServer) {
    Scenario s;
    s.topology = topology("star:8");
    s.server = ServerPlacement::dedicated;
    s.bytes = 20'000;
    s.linear = true;
    s.straggler = 3;
    s.straggler_factor = 100'000;  // a packet takes longer than a timeout
    const Report asking = run_verified(s);
    EXPECT_EQ(workers_of(asking).resent, 0U);
    EXPECT_GT(workers_of(asking).probes, 0U);
    s.blind_resend = true;
    const Report blind = run_verified(s);
    EXPECT_GT(workers_of(blind).resent, 0U);
    EXPECT_GT(blind.jobs[0].server.bytes, 2 * asking.jobs[0].server.bytes);
    EXPECT_LT(blind.jobs[0].share_aggregated(), asking.jobs[0].share_aggregated());
}

TEST(Policies, BlindResendsRecoverFromLosses) {
    Scenario s;
    s.topology = topology("racks:2x3");
    s.bytes = 200'000;
    s.faults.loss = 0.01;
    s.blind_resend = true;
    run_verified(s);
}

TEST(Policies, ForcedShareIsAddedByTheServerForAllWorkers) {
    Scenario s;
    s.topology = topology("star:4");
    s.server = ServerPlacement::dedicated;
    s.linear = true;  // no fragment is forwarded for another reason
    for (const double share : {0.25, 1.0}) {
        s.forward_share = share;
        const Report report = run_verified(s);
        EXPECT_EQ(switch_events(report, ATP_EVENT_BYPASSED) % 4, 0U);
        EXPECT_NEAR(1 - report.jobs[0].share_aggregated(), share, 0.02);
        EXPECT_EQ(workers_of(report).resent, 0U);
    }
}

TEST(Policies, ForcedShareSumsExactlyOverTwoLevelsAndLosses) {
    Scenario s;
    s.topology = topology("racks:2x2");
    s.bytes = 200'000;
    s.faults.loss = 0.01;
    s.forward_share = 0.5;
    run_verified(s);
}

}  // namespace
}  // namespace atp::sim
