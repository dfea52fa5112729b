// SPDX-License-Identifier: Apache-2.0
// Hazards of docs/spec/hazards.md that shared aggregators cause.
#include <gtest/gtest.h>

#include <algorithm>

#include "support.h"

namespace atp::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(Hazard, H07_PartialSumsLeftInTheSwitchAreFlushedWithoutATimer) {
    // Two jobs share a few aggregators: for some workers of a fragment the aggregator is occupied, for others it is
    // free.
    Scenario s;
    s.topology = topology("racks:2x3");
    s.jobs = 2;
    s.bytes = 100'000;
    s.aggregators = 16;
    s.min_timeout = milliseconds(50);
    const Report report = run_verified(s);
    EXPECT_GT(servers_of(report).collided, 100U);
    EXPECT_GT(switch_events(report, ATP_EVENT_FLUSHED), 0U);
    EXPECT_LT(workers_of(report).probes, 50U);  // newer ACKs overtake a fragment that collides
    EXPECT_LT(finished_ms(report), 50.0);
}

TEST(Hazard, H12_CollidingJobsSeparateWithinTwelveRounds) {
    // With a slow worker in each job, aggregators are occupied for long. Slots of two jobs that share an aggregator
    // collide in every round. The one that comes second moves after two; the other need not. One in sixteen then meets
    // a slot of the other job: in twelve rounds, a slot does so six times in a row with a probability of 2^-24.
    const auto collisions_in = [](std::uint64_t seed, std::uint64_t rounds) {
        Scenario s;
        s.seed = seed;
        s.topology = topology("star:4");
        s.jobs = 2;
        s.window_log2 = 6;
        s.aggregators = 1024;  // for 128 slots
        s.bytes = 64 * 61 * sizeof(float) * rounds;
        s.straggler = 0;
        s.straggler_factor = 10;
        const Report report = run_verified(s);
        for (const JobReport& job : report.jobs) EXPECT_EQ(job.server.collided, 2 * job.server.remapped) << seed;
        return servers_of(report).collided;
    };
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
        const std::uint64_t first_rounds = collisions_in(seed, 12);
        EXPECT_GT(first_rounds, 0U);
        EXPECT_EQ(collisions_in(seed, 120), first_rounds) << seed;  // and none after them
    }
}

TEST(Hazard, H13_JobsOnOneAggregatorFinishExactAndWithinTwiceTheFirst) {
    for (const unsigned jobs : {2U, 4U}) {
        Scenario s;
        s.topology = topology("star:4");
        s.placement = Placement::separate;
        s.jobs = jobs;
        s.bytes = 2'000'000;
        s.aggregators = 1;
        const Report report = run_verified(s);
        double first = 1e9;
        for (const JobReport& job : report.jobs) {
            first = std::min(first, milliseconds_of(job));
            EXPECT_LT(job.share_aggregated(), 0.5);
        }
        EXPECT_LT(finished_ms(report), 2 * first + 1.1) << "1 ms: a PROBE for the last fragment";
    }
}

TEST(Hazard, H29_AggregatorsOfADeadJobAreTakenOver) {
    // The first job's worker crashes early: partial sums without it fill the switch and can never complete.
    Scenario s;
    s.topology = topology("star:4");
    s.jobs = 2;
    s.bytes = 400'000;
    s.aggregators = 64;
    s.ageing = milliseconds(5);
    s.stagger = milliseconds(20);
    s.deadline = milliseconds(500);
    s.faults.outages = {{.kind = Outage::Kind::crash,
                         .node = Outage::Node::worker,
                         .job = 0,
                         .index = 0,
                         .at = Time(microseconds(22)),
                         .lasts = milliseconds(400)}};
    const Report report = run_verified(s);
    EXPECT_GT(switch_events(report, ATP_EVENT_TAKEN_OVER), 32U);
    EXPECT_EQ(report.jobs[0].incarnations, 2U);
    EXPECT_EQ(report.jobs[1].incarnations, 1U);
    EXPECT_LT(milliseconds_of(report.jobs[1]), 100.0);  // long before the first job forms again
    EXPECT_GT(report.jobs[1].share_aggregated(), 0.1);
}

TEST(Sharing, AggregatorsOfAnIdleJobServeTheOther) {
    // Off phases: while one job computes, the other has the memory (ATP paper, section 5.3.3).
    Scenario s;
    s.topology = topology("star:4");
    s.jobs = 2;
    s.bytes = 100'000;
    s.iterations = 5;
    s.pause = milliseconds(1);
    s.stagger = microseconds(500);
    s.aggregators = 300;
    const Report report = run_verified(s);
    for (const JobReport& job : report.jobs) EXPECT_GT(job.share_aggregated(), 0.5);
}

}  // namespace
}  // namespace atp::sim
