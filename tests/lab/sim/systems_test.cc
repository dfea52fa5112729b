// SPDX-License-Identifier: Apache-2.0
// The systems that ATP is compared with: their results match closed-form formulas.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "support.h"

namespace atp::sim {
namespace {

constexpr std::uint64_t payload = 1460;
constexpr std::uint64_t segment_overhead = 12 + 66;

Scenario scenario_of(System::Kind kind, Transport transport = Transport::rdma) {
    Scenario s;
    s.topology = topology("star:4");
    s.server = ServerPlacement::dedicated;
    s.systems = {{.kind = kind, .transport = transport}};
    s.bytes = 8'000'000;
    s.tensors = 8;
    return s;
}

std::uint64_t bytes_between(const Report& report, std::string_view from, std::string_view to) {
    const auto link = std::ranges::find_if(
        report.links, [&](const LinkReport& entry) { return entry.from == from && entry.to == to; });
    EXPECT_NE(link, report.links.end()) << from << ">" << to;
    return link == report.links.end() ? 0 : link->counters.bytes;
}

// Bytes of the data packets with their headers. Not included: acknowledgements of the data that flows the other way, at
// most one for each segment.
std::uint64_t on_wire(std::uint64_t bytes) { return bytes + (bytes + payload - 1) / payload * segment_overhead; }

void expect_about(std::uint64_t seen, std::uint64_t data) {
    EXPECT_GE(seen, on_wire(data) * 999 / 1000);
    EXPECT_LE(seen, on_wire(data) * 107 / 100);
}

struct Case {
    System::Kind kind;
    Transport transport;
};

class EverySystem : public testing::TestWithParam<Case> {};

TEST_P(EverySystem, SumsExactlyAndRepeatably) {
    Scenario s = scenario_of(GetParam().kind, GetParam().transport);
    s.iterations = 3;
    s.pause = std::chrono::microseconds(20);
    const Report report = run_verified(s);
    EXPECT_EQ(report.jobs[0].tensor_bytes, 3 * s.bytes);
    EXPECT_EQ(to_json(report), to_json(run(s)));
}

TEST_P(EverySystem, SumsExactlyUnderLossAndPauses) {
    Scenario s = scenario_of(GetParam().kind, GetParam().transport);
    s.bytes = 400'000;
    s.faults.loss = 0.01;
    s.faults.reorder = 0.01;
    s.faults.duplicate = 0.01;
    s.faults.outages = {{.kind = Outage::Kind::pause, .node = Outage::Node::worker, .at = Time(Duration(20'000))}};
    run_verified(s);
}

TEST_P(EverySystem, SumsExactlyBesideAJobOfAtp) {
    Scenario s = scenario_of(GetParam().kind, GetParam().transport);
    s.jobs = 2;
    s.systems.insert(s.systems.begin(), System{});
    const Report report = run_verified(s);
    EXPECT_EQ(report.jobs[0].system, "atp");
    EXPECT_NE(report.jobs[1].system, "atp");
    EXPECT_GT(report.jobs[0].server.completed, 0U);
    EXPECT_GT(report.jobs[1].flows.delivered_bytes, 0U);
}

TEST_P(EverySystem, SumsExactlyOverTwoLevels) {
    Scenario s = scenario_of(GetParam().kind, GetParam().transport);
    s.topology = topology("racks:2x3");
    run_verified(s);
}

INSTANTIATE_TEST_SUITE_P(
    All, EverySystem,
    testing::Values(Case{System::Kind::ps, Transport::rdma}, Case{System::Kind::ps, Transport::tcp},
                    Case{System::Kind::ps_n, Transport::rdma}, Case{System::Kind::ps_n, Transport::tcp},
                    Case{System::Kind::ring, Transport::rdma}, Case{System::Kind::ring, Transport::tcp}));

TEST(ParameterServers, OneServerCarriesTheBytesOfEveryWorker) {
    const Scenario s = scenario_of(System::Kind::ps);
    const Report report = run_verified(s);
    expect_about(bytes_between(report, "s0", "p0"), 4 * s.bytes);
    expect_about(bytes_between(report, "p0", "s0"), 4 * s.bytes);
    expect_about(bytes_between(report, "h0", "s0"), s.bytes);
    // The link of the server (p0) is the bottleneck: the job cannot end before this link has carried all bytes.
    const double least_ms =
        static_cast<double>(on_wire(4 * s.bytes)) * 8 / static_cast<double>(s.rate_bits_per_s) * 1e3;
    EXPECT_GT(milliseconds_of(report.jobs[0]), least_ms);
    // the whole first tensor arrives before the first sum leaves
    EXPECT_LT(milliseconds_of(report.jobs[0]), 1.4 * least_ms);
}

TEST(ParameterServers, ServerOnEachHostDividesTheBytes) {
    const Scenario s = scenario_of(System::Kind::ps_n);
    const Report report = run_verified(s);
    for (const char* host : {"h0", "h1", "h2", "h3"}) {
        // A host sends three quarters of its gradients to the other servers. Its server sends a quarter of the sums to
        // each of three hosts.
        expect_about(bytes_between(report, host, "s0"), 2 * 3 * s.bytes / 4);
        expect_about(bytes_between(report, "s0", host), 2 * 3 * s.bytes / 4);
    }
}

TEST(Ring, EachLinkCarriesTwoTimesNMinusOneNthsOfTheBytes) {
    const Scenario s = scenario_of(System::Kind::ring);
    const Report report = run_verified(s);
    const std::uint64_t data = 2 * 3 * s.bytes / 4;
    for (const char* host : {"h0", "h1", "h2", "h3"}) {
        expect_about(bytes_between(report, host, "s0"), data);
        expect_about(bytes_between(report, "s0", host), data);
    }
    EXPECT_EQ(report.jobs[0].flows.delivered_bytes, 4 * data);
    const double least_ms = static_cast<double>(on_wire(data)) * 8 / static_cast<double>(s.rate_bits_per_s) * 1e3;
    EXPECT_GT(milliseconds_of(report.jobs[0]), least_ms);
    EXPECT_LT(milliseconds_of(report.jobs[0]), 1.1 * least_ms);
}

TEST(Ring, RingOfOneSendsNothing) {
    Scenario s = scenario_of(System::Kind::ring);
    s.topology = topology("star:1");
    EXPECT_EQ(run_verified(s).packet_hops, 0U);
}

std::uint64_t total(const std::vector<std::uint64_t>& series) {
    return std::accumulate(series.begin(), series.end(), std::uint64_t{0});
}

TEST(Systems, SeriesAddsUpToTheBytesOfLinksAndJobs) {
    Scenario s = scenario_of(System::Kind::ring);
    s.jobs = 2;
    s.systems.insert(s.systems.begin(), System{});
    s.sample = std::chrono::microseconds(100);
    const Report report = run_verified(s);
    ASSERT_TRUE(report.series.has_value());
    ASSERT_EQ(report.series->link_bytes.size(), report.links.size());
    for (std::size_t i = 0; i < report.links.size(); ++i) {
        EXPECT_EQ(total(report.series->link_bytes[i]), report.links[i].counters.bytes);
    }
    EXPECT_EQ(total(report.series->job_bytes[1]), s.bytes);
}

TEST(Systems, SeriesSeparatesSumsOfTheNetworkAndTheServer) {
    Scenario s = scenario_of(System::Kind::atp);
    s.bytes = 1'000'000;
    s.linear = true;  // no two slots share an aggregator
    s.sample = std::chrono::microseconds(10);
    const Report in_network = run_verified(s);
    ASSERT_EQ(workers_of(in_network).resent, 0U);
    EXPECT_EQ(total(in_network.series->job_added_in_network[0]), 3 * in_network.jobs[0].server.completed);
    EXPECT_EQ(total(in_network.series->job_added_at_server[0]), 0U);
    s.aggregation = Aggregation::nowhere;
    const Report at_server = run_verified(s);
    EXPECT_EQ(total(at_server.series->job_added_in_network[0]), 0U);
    EXPECT_EQ(total(at_server.series->job_added_at_server[0]), 3 * at_server.jobs[0].server.completed);
}

TEST(HostCosts, SlowestCostLimitsAPacket) {
    Scenario s = scenario_of(System::Kind::atp);
    s.bytes = 500'000;
    s.host_cost = {.per_packet = std::chrono::nanoseconds(500)};
    const Duration by_packets = run_verified(s).jobs[0].time();
    const std::int64_t packet_bits = 8 * (ATP_HEADER_BYTES + 4 * s.lanes + s.overhead_bytes);
    s.host_cost.bits_per_s = packet_bits * 1'000'000'000 / 400;  // 400 ns
    EXPECT_EQ(run_verified(s).jobs[0].time(), by_packets);
    s.host_cost.bits_per_s = packet_bits * 1'000'000'000 / 1000;
    EXPECT_NEAR(milliseconds_of(run_verified(s).jobs[0]), 2 * to_milliseconds(by_packets),
                0.05 * to_milliseconds(by_packets));
}

TEST(Systems, UnsupportedScenarioIsRefusedWithTheReason) {
    Scenario on_switch = scenario_of(System::Kind::ps);
    on_switch.server = ServerPlacement::on_switch;
    EXPECT_NE(problem_of(on_switch).value_or("").find("dedicated"), std::string::npos);
    Scenario crash = scenario_of(System::Kind::ring);
    crash.faults.outages = {{.kind = Outage::Kind::crash, .node = Outage::Node::worker}};
    EXPECT_NE(problem_of(crash).value_or("").find("crashes"), std::string::npos);
    Scenario unknown = scenario_of(System::Kind::ring);
    unknown.models = {"LeNet"};
    EXPECT_NE(problem_of(unknown).value_or("").find("VGG16"), std::string::npos);
}

}  // namespace
}  // namespace atp::sim
