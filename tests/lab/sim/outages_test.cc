// SPDX-License-Identifier: Apache-2.0
// Jobs that join, sum, fail and form again: each outage by itself, with the error that ranks must read.
#include <gtest/gtest.h>

#include "sim/scenario_text.h"
#include "sim/shrink.h"
#include "sim/swarm.h"
#include "sim/truth.h"
#include "support.h"

namespace atp::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = Outage::Kind;
using Node = Outage::Node;

struct OutageCase {
    Kind kind;
    Node node;
};
constexpr OutageCase all_outages[] = {
    {Kind::crash, Node::worker},        {Kind::pause, Node::worker},         {Kind::silence, Node::worker},
    {Kind::cut, Node::worker},          {Kind::cut_up, Node::worker},        {Kind::cut_down, Node::worker},
    {Kind::crash, Node::fabric_switch}, {Kind::pause, Node::fabric_switch},  {Kind::kill, Node::fabric_switch},
    {Kind::cut, Node::fabric_switch},   {Kind::cut_up, Node::fabric_switch}, {Kind::cut_down, Node::fabric_switch}};

// Two racks of two ranks sum every 60 ms for some seconds.
Scenario racks() {
    Scenario s;
    s.topology = topology("racks:2x2");
    s.lanes = 8;
    s.bytes = 100;
    s.aggregators = 64;
    s.iterations = 60;
    s.pause = milliseconds(60);
    s.start_spread = milliseconds(500);
    s.faults.reorder = 1;
    s.faults.reorder_delay = milliseconds(5);
    s.deadline = seconds(20);
    s.time_limit = Time(seconds(40));
    return s;
}

Scenario racks_with(const OutageCase& each, Duration lasts) {
    Scenario s = racks();
    s.faults.outages = {{.kind = each.kind, .node = each.node, .index = 1, .at = Time(seconds(2)), .lasts = lasts}};
    return s;
}

std::string name_of(const OutageCase& each) {
    return (each.node == Node::worker ? "worker " : "switch ") + std::to_string(static_cast<int>(each.kind));
}

TEST(Outages, JobsFormAndSumWithoutOne) {
    Scenario s = racks();
    s.jobs = 3;
    s.faults.duplicate = 0.5;
    for (const JobReport& job : run_verified(s).jobs) {
        EXPECT_EQ(job.incarnations, 1U);
        EXPECT_EQ(job.failed_ranks, 0U);
    }
}

// The world checks the names in the errors, and that no rank waits for longer than the hold time.
TEST(Outages, EachThatLastsFailsTheRanksInTimeAndTheJobFormsAgain) {
    for (const OutageCase& each : all_outages) {
        const Report report = run_verified(racks_with(each, seconds(8)));
        EXPECT_GE(report.jobs[0].incarnations, 2U) << name_of(each);
        EXPECT_GE(report.jobs[0].failed_ranks, 2U) << name_of(each);
    }
}

TEST(Outages, ShortOnesOfProcessesThatKeepTheirStateFailNothing) {
    for (const OutageCase& each : all_outages) {
        if (each.kind == Kind::crash || each.kind == Kind::kill || each.kind == Kind::silence) continue;
        const Report report = run_verified(racks_with(each, milliseconds(200)));
        EXPECT_EQ(report.jobs[0].failed_ranks, 0U) << name_of(each);
    }
}

TEST(Outages, RankThatLeavesEndsTheJobOfTheOthers) {
    const Report report = run_verified(racks_with({Kind::leave, Node::worker}, seconds(1)));
    EXPECT_TRUE(report.jobs[0].given_up);
    EXPECT_FALSE(report.jobs[0].finished.has_value());
    EXPECT_EQ(report.jobs[0].failed_ranks, 3U);
    EXPECT_NE(report.jobs[0].errors.front().find("rank 1"), std::string::npos) << report.jobs[0].errors.front();
}

// A false alarm is as likely for each member, so the largest job shows it first.
TEST(Outages, LargestJobAt1PercentLossAccusesNoMember) {
    Scenario s = racks();
    s.topology = topology("racks:32x32");
    s.iterations = 40;
    s.faults.loss = 0.005;
    s.faults.outages.clear();
    const Report report = run_verified(s);
    EXPECT_EQ(report.jobs[0].failed_ranks, 0U);
    EXPECT_EQ(report.jobs[0].incarnations, 1U);
}

TEST(Outages, ThatNoKindOfNodeHasAreRefused) {
    Scenario s = racks_with({Kind::kill, Node::worker}, seconds(1));
    EXPECT_NE(problem_of(s).value_or("").find("not one of this kind"), std::string::npos);
    s = racks_with({Kind::cut, Node::fabric_switch}, seconds(1));
    s.faults.outages.front().index = 2;
    EXPECT_NE(problem_of(s).value_or("").find("the last switch"), std::string::npos);
}

// ------------------------------------------------------------------------------------------------------------ Truth

Error error_about(const std::string& peer) {
    Error error;
    error.peer = peer;
    return error;
}

TEST(SimTruth, OnlyTheVictimMayBeNamedAndOnlyAfterTheOutage) {
    const Scenario s = racks_with({Kind::crash, Node::worker}, seconds(8));
    const Fabric fabric = build_fabric(s);
    const Truth truth(s, fabric);
    const Time after = Time(seconds(3));
    EXPECT_EQ(truth.objection_to(0, 0, error_about("rank 1"), after), std::nullopt);
    EXPECT_EQ(truth.objection_to(0, 0, error_about("rank 2"), after), "it is not at fault");
    EXPECT_EQ(truth.objection_to(0, 0, error_about("10.0.0.1:4790"), after), "it is not at fault");
    EXPECT_EQ(truth.objection_to(0, 0, error_about("rank 1"), Time(seconds(1))), "the fault comes later");
}

TEST(SimTruth, NothingMayBeNamedWithoutAnOutageOrForAShortOne) {
    Scenario s = racks_with({Kind::cut_up, Node::worker}, milliseconds(100));
    const Fabric fabric = build_fabric(s);
    const Truth truth(s, fabric);
    EXPECT_EQ(truth.objection_to(0, 0, error_about("rank 1"), Time(seconds(3))), "the fault is too short");
    s.faults.outages.clear();
    EXPECT_EQ(truth.objection_to(0, 0, error_about("rank 1"), Time(seconds(3))), "there is no fault");
}

TEST(SimTruth, RankThatTheOthersHaveLeftMayNameThemOnceItsLinkIsBack) {
    const Scenario s = racks_with({Kind::cut, Node::worker}, seconds(4));
    const Fabric fabric = build_fabric(s);
    const Truth truth(s, fabric);
    const Outage& cut = s.faults.outages.front();
    const Time back = cut.at + cut.lasts;
    EXPECT_EQ(truth.objection_to(0, cut.index, error_about("rank 2"), back), std::nullopt);
    EXPECT_EQ(truth.objection_to(0, cut.index, error_about("rank 2"), back - milliseconds(1)), "it is not at fault");
    EXPECT_EQ(truth.objection_to(0, cut.index + 1, error_about("rank 2"), back), "it is not at fault");
}

TEST(SimTruth, AnythingMayBeNamedIfLinksAreBad) {
    Scenario s = racks();
    s.faults.loss = 0.3;
    const Fabric fabric = build_fabric(s);
    EXPECT_EQ(Truth(s, fabric).objection_to(0, 0, error_about("rank 7"), Time(seconds(3))), std::nullopt);
}

TEST(SimTruth, CutLeafAndTheLastSwitchMayBeNamed) {
    const Scenario s = racks_with({Kind::cut, Node::fabric_switch}, seconds(8));
    const Fabric fabric = build_fabric(s);
    const Truth truth(s, fabric);
    const Time after = Time(seconds(6));
    EXPECT_EQ(truth.objection_to(0, 0, error_about("10.0.0.2:4790"), after), std::nullopt);
    EXPECT_EQ(truth.objection_to(0, 0, error_about("10.0.0.3:4790"), after), std::nullopt);
    EXPECT_EQ(truth.objection_to(0, 0, error_about("10.0.0.1:4790"), after), "it is not at fault");
    EXPECT_TRUE(truth.stops(0));
}

// ----------------------------------------------------------------------------------------------------------- Shrinking

TEST(Shrink, FindsASmallScenarioThatStillFails) {
    Scenario s = racks();
    s.jobs = 2;
    s.faults.duplicate = 0.1;
    s.rate_bits_per_s *= 2;  // which the sentence does not name
    s.faults.outages = {{.kind = Kind::pause, .node = Node::worker, .index = 1, .at = Time(milliseconds(100))}};
    s.faults.interfere = [](const Passage& passage) {
        return Disposition{.lose = passage.header.type == ATP_TYPE_ACK};  // no job can finish
    };
    s.time_limit = Time(seconds(1));
    const Shrunk shrunk = shrink(s, 200);
    EXPECT_FALSE(shrunk.failures.empty());
    EXPECT_EQ(shrunk.scenario.jobs, 1U);
    EXPECT_TRUE(shrunk.scenario.faults.outages.empty());
    EXPECT_EQ(shrunk.scenario.faults.duplicate, 0);
    EXPECT_EQ(shrunk.scenario.rate_bits_per_s, Scenario{}.rate_bits_per_s);
    EXPECT_EQ(shrunk.scenario.iterations, 1U);
    EXPECT_LE(shrunk.runs, 200U);
    EXPECT_NE(text_of(shrunk.scenario).find("1 job of"), std::string::npos) << text_of(shrunk.scenario);
}

TEST(Shrink, TextNamesWhatMatters) {
    Scenario s = racks_with({Kind::cut_up, Node::worker}, seconds(8));
    s.faults.loss = 0.01;
    const std::string text = text_of(s);
    for (const char* part : {"1 job of 4 ranks in racks:2x2", "loss 1 %", "cut up w0.1@2s+8s"}) {
        EXPECT_NE(text.find(part), std::string::npos) << text;
    }
}

}  // namespace
}  // namespace atp::sim
