// SPDX-License-Identifier: Apache-2.0
// Each fault and each unusual setting alone, in a network of two levels: the sums equal those of a run without faults,
// to the last bit.
#include <gtest/gtest.h>

#include <functional>

#include "support.h"

namespace atp::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

struct FaultCase {
    const char* name;
    std::function<void(Scenario&)> cause;
    // Counts the fault, which must have happened.
    std::function<std::uint64_t(const Report&)> seen;
};

LinkCounters links_of(const Report& report) {
    LinkCounters sum{};
    for (const LinkReport& link : report.links) add_counters(link_fields, link.counters, sum);
    return sum;
}

Outage outage(Outage::Kind kind, Outage::Node node, unsigned index, Duration at, Duration lasts) {
    return {.kind = kind, .node = node, .job = 0, .index = index, .at = Time(at), .lasts = lasts};
}

class SingleFault : public testing::TestWithParam<FaultCase> {};

TEST_P(SingleFault, ChangesNoSum) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        Scenario s;
        s.seed = seed;
        s.topology = topology("racks:3x2");
        s.bytes = 60'000;
        s.tensors = 3;
        GetParam().cause(s);
        const Report report = run_verified(s);
        EXPECT_GT(GetParam().seen(report), 0U) << "the fault never occurred";
    }
}

const FaultCase fault_cases[] = {
    {"Loss", [](Scenario& s) { s.faults.loss = 0.05; }, [](const Report& r) { return links_of(r).lost; }},
    {"HeavyLoss",
     [](Scenario& s) {
         s.faults.loss = 0.4;
         s.faults.until = Time(milliseconds(400));  // no job survives it for seconds
     },
     [](const Report& r) { return links_of(r).lost; }},
    {"Duplication", [](Scenario& s) { s.faults.duplicate = 0.3; },
     [](const Report& r) { return links_of(r).duplicated; }},
    {"Reordering", [](Scenario& s) { s.faults.reorder = 0.3; }, [](const Report& r) { return links_of(r).reordered; }},
    {"LongReordering",
     [](Scenario& s) {
         s.faults.reorder = 0.1;
         s.faults.reorder_delay = milliseconds(3);
     },
     [](const Report& r) { return links_of(r).reordered; }},
    {"FullQueues",
     [](Scenario& s) {
         s.queue_bytes = 2'000;
         s.aggregation = Aggregation::nowhere;
         s.rate_bits_per_s = 1'000'000'000;
     },
     [](const Report& r) { return links_of(r).dropped; }},
    {"Marks",
     [](Scenario& s) {
         s.ecn_bytes = 1;
         s.aggregation = Aggregation::racks;
         s.server = ServerPlacement::dedicated;
     },
     [](const Report& r) { return workers_of(r).halvings; }},
    {"ASwitchRestartingEmpty",
     [](Scenario& s) {
         s.faults.outages = {
             outage(Outage::Kind::crash, Outage::Node::fabric_switch, 1, microseconds(12), milliseconds(4))};
     },
     [](const Report& r) { return workers_of(r).probes; }},
    {"ARootSwitchRestartingEmpty",
     [](Scenario& s) {
         s.faults.outages = {
             outage(Outage::Kind::crash, Outage::Node::fabric_switch, 3, microseconds(12), microseconds(1))};
     },
     [](const Report& r) { return r.jobs[0].failed_ranks; }},
    {"APausedSwitch",
     [](Scenario& s) {
         s.faults.outages = {
             outage(Outage::Kind::pause, Outage::Node::fabric_switch, 0, microseconds(12), milliseconds(4))};
     },
     [](const Report& r) { return workers_of(r).probes; }},
    {"APausedWorker",
     [](Scenario& s) {
         s.bytes = 300'000;  // more than it has sent by then
         s.faults.outages = {outage(Outage::Kind::pause, Outage::Node::worker, 2, microseconds(12), milliseconds(9))};
     },
     [](const Report& r) { return workers_of(r).waits; }},
    {"APausedServer",
     [](Scenario& s) {
         s.faults.outages = {outage(Outage::Kind::pause, Outage::Node::server, 0, microseconds(12), milliseconds(9))};
     },
     [](const Report& r) { return workers_of(r).probes; }},
    {"FloatsEverywhere", [](Scenario& s) { s.float_share = 1; },
     [](const Report& r) { return servers_of(r).float_fragments; }},
    {"SomeFloats", [](Scenario& s) { s.float_share = 0.1; },
     [](const Report& r) { return servers_of(r).float_fragments; }},
    {"SomeOverflows",
     [](Scenario& s) {
         s.overflow_share = 0.1;
         s.reactive = true;
     },

     [](const Report& r) { return servers_of(r).overflowed; }},
    {"TinyWindow", [](Scenario& s) { s.window_log2 = 0; }, [](const Report& r) { return servers_of(r).completed; }},
    {"OneAggregator", [](Scenario& s) { s.aggregators = 1; }, [](const Report& r) { return servers_of(r).collided; }},
    {"SequenceNumbersThatWrap", [](Scenario& s) { s.first_seq = 0xffffffc0U; },
     [](const Report& r) { return servers_of(r).completed; }},
};

INSTANTIATE_TEST_SUITE_P(Each, SingleFault, testing::ValuesIn(fault_cases),
                         [](const auto& fault) { return fault.param.name; });

TEST(Faults, HealedNetworkLosesNoPackets) {
    Scenario s;
    s.topology = topology("star:4");
    s.bytes = 400'000;
    s.faults.loss = 0.2;
    s.faults.from = Time(microseconds(30));  // the job has formed
    const std::uint64_t lost_without_end = links_of(run_verified(s)).lost;
    s.faults.until = Time(milliseconds(1));
    const std::uint64_t lost_until_healed = links_of(run_verified(s)).lost;
    EXPECT_GT(lost_until_healed, 100U);
    EXPECT_LT(2 * lost_until_healed, lost_without_end);
    s.faults.until = Time();
    EXPECT_EQ(links_of(run_verified(s)).lost, 0U);
}

TEST(Faults, UnfinishedRunIsAFailureWithItsTime) {
    Scenario s;
    s.topology = topology("star:2");
    s.faults.loss = 1;
    s.time_limit = Time(milliseconds(50));
    const Report report = run(s);
    EXPECT_FALSE(report.passed());
    ASSERT_FALSE(report.failures.empty());
    EXPECT_NE(report.failures[0].find("not finished at"), std::string::npos) << report.failures[0];
}

TEST(Faults, LossyWorkerLosesPacketsOnItsLinksOnly) {
    Scenario s;
    s.topology = topology("star:4");
    s.faults.loss = 0.05;
    s.faults.lossy_worker = 2;
    for (const LinkReport& link : run_verified(s).links) {
        EXPECT_EQ(link.counters.lost > 0, link.from == "h2" || link.to == "h2") << link.from << ">" << link.to;
    }
    s.faults.lossy_worker = 4;
    EXPECT_NE(problem_of(s).value_or("").find("4 is out of range"), std::string::npos);
}

}  // namespace
}  // namespace atp::sim
