// SPDX-License-Identifier: Apache-2.0
// Hazards of docs/spec/hazards.md in which a node crashes: typed errors with the reason, a new incarnation, and
// no data of the old one in sums of the new one.
#include <gtest/gtest.h>

#include "support.h"

namespace atp::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

Scenario with_crash(Outage::Node node, unsigned index) {
    Scenario s;
    s.topology = topology("racks:2x3");
    s.bytes = 300'000;
    s.tensors = 4;
    s.iterations = 2;
    s.deadline = milliseconds(100);
    s.faults.outages = {{.kind = Outage::Kind::crash,
                         .node = node,
                         .job = 0,
                         .index = index,
                         .at = Time(microseconds(30)),
                         .lasts = milliseconds(5)}};
    return s;
}

TEST(Hazard, H26_RestartedServerFailsAllWorkersWithTheReason) {
    const Report report = run_verified(with_crash(Outage::Node::server, 0));
    const JobReport& job = report.jobs[0];
    EXPECT_EQ(job.incarnations, 2U);
    EXPECT_EQ(job.failed_ranks, 6U);  // every worker got the error
    ASSERT_EQ(job.errors.size(), 6U);
    for (const std::string& error : job.errors) {
        EXPECT_NE(error.find("no longer has the sums of this job"), std::string::npos) << error;
        EXPECT_NE(error.find("10.0.0.3:4790"), std::string::npos) << error;
    }
    EXPECT_LT(milliseconds_of(job), 110.0);  // the deadline, and the time to form again
}

TEST(Hazard, H27_OldPacketsOfARestartedJobAreDroppedByAllNodes) {
    // A third of all packets is late by up to three deadlines: they arrive in the next incarnation.
    Scenario s = with_crash(Outage::Node::server, 0);
    s.faults.reorder = 0.3;
    s.faults.reorder_delay = milliseconds(300);
    s.faults.from = Time(microseconds(25));  // the job has formed
    s.faults.until = Time(milliseconds(2));
    const Report report = run_verified(s);
    EXPECT_GE(report.jobs[0].incarnations, 2U);
    std::uint64_t forged = 0;
    for (const SwitchReport& at : report.switches) forged += at.counters.forged;
    EXPECT_GT(forged + workers_of(report).forged, 0U);
    EXPECT_EQ(report.audit_failures(), 0U);
}

TEST(Hazard, H27_ReplayedPacketsOfAnEarlierIncarnationAreRefused) {
    Scenario s = with_crash(Outage::Node::server, 0);
    s.faults.replay = 0.5;
    for (const Aggregation aggregation : {Aggregation::everywhere, Aggregation::nowhere}) {
        s.aggregation = aggregation;  // nowhere: switches only forward, and do not filter old packets
        const Report report = run_verified(s);
        EXPECT_EQ(report.jobs[0].incarnations, 2U);
        // A rank's channel drops packets of another token before its worker counts them.
        std::uint64_t forged = 0;
        for (const SwitchReport& at : report.switches) forged += at.counters.forged;
        EXPECT_GT(forged, 0U);
        EXPECT_EQ(report.audit_failures(), 0U);
    }
}

TEST(Hazard, H28_DeadWorkerRejoinsANewIncarnationWithExactSums) {
    for (unsigned rank = 0; rank < 6; ++rank) {
        const Report report = run_verified(with_crash(Outage::Node::worker, rank));
        EXPECT_EQ(report.jobs[0].incarnations, 2U);
        EXPECT_EQ(report.jobs[0].failed_ranks, 5U);  // every survivor got the error
        EXPECT_EQ(report.jobs[0].timed_out, 5U);     // at its deadline
    }
}

TEST(Hazard, H28_ErrorOfASurvivorNamesTheMissingWorker) {
    Scenario s = with_crash(Outage::Node::worker, 4);
    s.min_timeout = milliseconds(1);
    const Report report = run_verified(s);
    bool named = false;
    for (const std::string& error : report.jobs[0].errors) {
        named |= error.find("rank 4") != std::string::npos;
    }
    EXPECT_TRUE(named) << report.jobs[0].errors.front();
}

TEST(Incarnations, RestartLeavesTheOtherJobUnaffected) {
    Scenario s = with_crash(Outage::Node::server, 0);
    s.server = ServerPlacement::dedicated;
    s.jobs = 2;
    const Report report = run_verified(s);
    EXPECT_EQ(report.jobs[0].incarnations, 2U);
    EXPECT_EQ(report.jobs[1].incarnations, 1U);
    EXPECT_EQ(report.jobs[1].timed_out, 0U);
}

TEST(Incarnations, RepeatedCrashesEndInExactSums) {
    Scenario s = with_crash(Outage::Node::server, 0);
    s.iterations = 40;
    s.pause = milliseconds(10);
    for (unsigned again = 1; again <= 3; ++again) {
        Outage next = s.faults.outages.front();
        next.node = again == 2 ? Outage::Node::worker : Outage::Node::server;
        next.index = again == 2 ? 3 : 0;
        next.at = Time(milliseconds(101 * again) + microseconds(30));
        s.faults.outages.push_back(next);
    }
    EXPECT_GE(run_verified(s).jobs[0].incarnations, 4U);
}

}  // namespace
}  // namespace atp::sim
