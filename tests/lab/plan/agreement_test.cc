// SPDX-License-Identifier: Apache-2.0
// Compares the plan's times with those of the simulator, which sends every packet.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "clusters.h"
#include "plan/evaluation.h"
#include "sim/simulation.h"

namespace atp::plan {
namespace {

using Shape = sim::TopologySpec::Shape;

struct Case {
    const char* name;
    sim::Scenario scenario;
    double tolerance = 0.05;
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

sim::Scenario training(const char* topology, const char* model, double scale, const char* system = "atp") {
    sim::Scenario scenario;
    scenario.topology = *sim::parse_topology(topology);
    scenario.models = {model};
    scenario.scale = scale;
    scenario.iterations = 4;
    scenario.audit = false;
    scenario.systems = {*sim::parse_system(system)};
    if (scenario.systems.front().kind != sim::System::Kind::atp) scenario.server = sim::ServerPlacement::dedicated;
    return scenario;
}

sim::Report run_verified(const sim::Scenario& scenario) {
    const auto problem = sim::problem_of(scenario);
    EXPECT_FALSE(problem.has_value()) << problem.value_or("");
    sim::Report report = sim::run(scenario);
    EXPECT_TRUE(report.passed());
    return report;
}

Switch switch_of(const sim::Scenario& scenario, std::string name) {
    Switch one = make_switch(std::move(name), scenario.rate_bits_per_s);
    one.uplink_bits_per_s = scenario.rate_bits_per_s;
    one.delay = scenario.delay;
    one.queue_bytes = scenario.ecn_bytes;
    one.lanes = scenario.lanes;
    one.memory_bytes = scenario.aggregators * protocol::aggregator_bytes(scenario.lanes);
    return one;
}

// The last switch is the root, as in the simulator.
Cluster cluster_of(const sim::Scenario& scenario) {
    const sim::TopologySpec& spec = scenario.topology;
    const bool racks = spec.shape == Shape::racks;
    Cluster cluster;
    cluster.root = racks ? spec.first : 0;
    for (std::size_t at = 0; at <= cluster.root; ++at) {
        cluster.switches.push_back(switch_of(scenario, "s" + std::to_string(at)));
        if (at != cluster.root) cluster.switches[at].parent = cluster.root;
    }
    for (unsigned i = 0; i < scenario.jobs; ++i) {
        std::vector<unsigned> workers(cluster.switches.size(), racks ? spec.second : spec.first);
        if (racks) workers.back() = 0;
        Job job = make_job("j" + std::to_string(i), workers, scenario.workload(i));
        job.shares_hosts = scenario.placement == sim::Placement::shared;
        if (scenario.server == sim::ServerPlacement::dedicated) job.server = ServerPlacement::dedicated;
        if (scenario.server == sim::ServerPlacement::colocated) job.server = ServerPlacement::colocated;
        cluster.jobs.push_back(std::move(job));
    }
    return cluster;
}

System system_of(const sim::Scenario& scenario, const Cluster& cluster) {
    System system{.kind = System::Kind::atp, .aggregates = std::vector<bool>(cluster.switches.size(), true)};
    switch (scenario.system_of(0).kind) {
        case sim::System::Kind::ps: system.kind = System::Kind::server; break;
        case sim::System::Kind::ps_n: system.kind = System::Kind::servers; break;
        case sim::System::Kind::ring: system.kind = System::Kind::ring; break;
        default: break;
    }
    if (scenario.aggregation == sim::Aggregation::racks) system.aggregates[cluster.root] = false;
    return system;
}

class Agreement : public testing::TestWithParam<Case> {};

TEST_P(Agreement, PlannedIterationTimeIsWithinToleranceOfTheSimulation) {
    const sim::Scenario& scenario = GetParam().scenario;
    const sim::Report report = run_verified(scenario);
    const Cluster cluster = cluster_of(scenario);
    const System system = system_of(scenario, cluster);
    const auto outcomes = evaluate(Network(cluster), system, memories_of(cluster, system.aggregates));
    for (std::size_t job = 0; job < outcomes.size(); ++job) {
        const auto planned = static_cast<double>(outcomes[job].iteration.count());
        const auto simulated = static_cast<double>(report.jobs[job].iteration_time.count());
        EXPECT_NEAR(planned / simulated, 1, GetParam().tolerance) << planned / 1e3 << " us for " << simulated / 1e3;
    }
}

sim::Scenario alexnet(const char* topology, const char* system = "atp") {
    return training(topology, "AlexNet", 50, system);
}

sim::Scenario dedicated(sim::Scenario scenario) {
    scenario.server = sim::ServerPlacement::dedicated;
    return scenario;
}

sim::Scenario colocated(sim::Scenario scenario) {
    scenario.server = sim::ServerPlacement::colocated;
    return scenario;
}

// Racks aggregate; the root only forwards.
sim::Scenario racks_only(sim::Scenario scenario) {
    scenario.aggregation = sim::Aggregation::racks;
    return dedicated(scenario);
}

sim::Scenario two_jobs(sim::Scenario scenario, sim::Placement placement) {
    scenario.jobs = 2;
    scenario.placement = placement;
    return scenario;
}

sim::Scenario with_memory(sim::Scenario scenario, std::uint32_t aggregators) {
    scenario.aggregators = aggregators;
    return dedicated(scenario);
}

sim::Scenario at_10_gbit(sim::Scenario scenario) {
    scenario.rate_bits_per_s = 10 * gbit;
    return scenario;
}

sim::Scenario at_10_us(sim::Scenario scenario) {
    scenario.delay = std::chrono::microseconds(10);
    return scenario;
}

// The jobs meet at different phases in each iteration, so the comparison needs many iterations.
sim::Scenario unequal_jobs() {
    sim::Scenario scenario = two_jobs(alexnet("star:4"), sim::Placement::shared);
    scenario.models.emplace_back("VGG16");
    scenario.iterations = 40;
    scenario.scale = 150;
    return scenario;
}

std::string name_of(const testing::TestParamInfo<Case>& given) { return given.param.name; }

INSTANTIATE_TEST_SUITE_P(Atp, Agreement,
                         testing::Values(Case{"Computing", training("star:8", "VGG16", 100)},
                                         Case{"Sending", alexnet("star:8")},
                                         Case{"DedicatedServer", dedicated(alexnet("star:8"))},
                                         Case{"ColocatedServer", colocated(alexnet("star:8"))},
                                         Case{"TwoLevels", alexnet("racks:2x4")},
                                         Case{"LeavesAlone", racks_only(alexnet("racks:2x4"))},
                                         Case{"SlowLinks", at_10_gbit(training("racks:2x4", "VGG16", 100))},
                                         Case{"LongDelay", at_10_us(alexnet("star:4"))}),
                         name_of);

INSTANTIATE_TEST_SUITE_P(Others, Agreement,
                         testing::Values(Case{"OneServer", alexnet("star:8", "ps")},
                                         Case{"OneServerBehindUplinks", alexnet("racks:2x4", "ps")},
                                         Case{"ManyServers", alexnet("star:8", "ps-n")},
                                         Case{"ManyServersBehindUplinks", alexnet("racks:2x4", "ps-n")},
                                         Case{"Ring", alexnet("star:8", "ring")},
                                         Case{"RingOverUplinks", alexnet("racks:2x4", "ring")}),
                         name_of);

// Below one root, the second job joins after the first: a leaf asks a parent that has not answered for one channel
// only. Jobs that send at different times are faster than in the plan.
INSTANTIATE_TEST_SUITE_P(SeveralJobs, Agreement,
                         testing::Values(Case{"OnOneHost", two_jobs(alexnet("star:4"), sim::Placement::shared), 0.15},
                                         Case{"OnOneUplink", two_jobs(alexnet("racks:2x2"), sim::Placement::separate),
                                              0.35},
                                         Case{"OfUnequalLength", unequal_jobs()}),
                         name_of);

// The plan assumes that equal jobs always send at the same time. In the simulator, the phases of jobs drift apart if
// memory is scarce. The jobs are then faster than in the plan.
INSTANTIATE_TEST_SUITE_P(LittleMemory, Agreement,
                         testing::Values(Case{"Half", with_memory(alexnet("star:8"), 128), 0.1},
                                         Case{"Quarter", with_memory(alexnet("star:8"), 64), 0.1},
                                         Case{"HalfAtTwoLevels", with_memory(alexnet("racks:2x4"), 128), 0.1},
                                         Case{"HalfForTwoJobs",
                                              with_memory(two_jobs(alexnet("star:4"), sim::Placement::separate), 256),
                                              0.3}),
                         name_of);

// ------------------------------------------------------------------------------------------------------ Bytes of links

struct LinkPair {
    const char* from;
    const char* to;
    Link::Kind kind;
    std::size_t at;
};

void expect_same_bytes(const sim::Scenario& scenario, const std::vector<LinkPair>& pairs) {
    const sim::Report report = run_verified(scenario);
    const Cluster cluster = cluster_of(scenario);
    const Network network(cluster);
    const std::vector<double> all(cluster.switches.size(), 1);
    const Traffic traffic = traffic_of(network, 0, system_of(scenario, cluster), all);
    const double gradients =
        static_cast<double>(cluster.jobs[0].workload.elements() * sizeof(float)) * scenario.iterations;
    for (const LinkPair& pair : pairs) {
        double planned = 0;
        for (std::size_t i = 0; i < network.links().size(); ++i) {
            const Link& link = network.links()[i];
            if (link.kind == pair.kind && link.at == pair.at) planned = std::max(planned, traffic.loads[i] * gradients);
        }
        const auto seen = std::ranges::find_if(
            report.links, [&](const sim::LinkReport& link) { return link.from == pair.from && link.to == pair.to; });
        ASSERT_NE(seen, report.links.end());
        EXPECT_NEAR(planned / static_cast<double>(seen->counters.bytes), 1, 0.03) << pair.from << " to " << pair.to;
    }
}

const std::vector<LinkPair> without_server{{"h0", "s0", Link::Kind::worker, 0},
                                           {"s0", "h0", Link::Kind::worker, 0},
                                           {"h7", "s1", Link::Kind::worker, 1},
                                           {"s0", "s2", Link::Kind::uplink, 0},
                                           {"s2", "s1", Link::Kind::uplink, 1}};

std::vector<LinkPair> with_server() {
    std::vector<LinkPair> pairs = without_server;
    pairs.push_back({"s2", "p0", Link::Kind::server, 2});
    return pairs;
}

TEST(AgreementOnBytes, AtpOverTwoLevelsMatchesTheSimulation) {
    expect_same_bytes(dedicated(alexnet("racks:2x4")), with_server());
}
TEST(AgreementOnBytes, OneServerMatchesTheSimulation) { expect_same_bytes(alexnet("racks:2x4", "ps"), with_server()); }
TEST(AgreementOnBytes, ManyServersMatchTheSimulation) {
    expect_same_bytes(alexnet("racks:2x4", "ps-n"), without_server);
}
TEST(AgreementOnBytes, RingMatchesTheSimulation) { expect_same_bytes(alexnet("racks:2x4", "ring"), without_server); }

}  // namespace
}  // namespace atp::plan
