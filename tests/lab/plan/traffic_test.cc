// SPDX-License-Identifier: Apache-2.0
// The bytes that each system sends on each link.
#include "plan/traffic.h"

#include <gtest/gtest.h>

#include <map>

#include "clusters.h"
#include "sim/scenario.h"
#include "wire/format.h"

namespace atp::plan {
namespace {

constexpr std::uint64_t bytes = 1'000'000;

System atp_at(std::vector<bool> aggregates) { return {.kind = System::Kind::atp, .aggregates = std::move(aggregates)}; }
System other(System::Kind kind) { return {.kind = kind, .aggregates = {}}; }

// Copies of the gradients on each link of the first job, without headers. A host has the name of its switch.
class Copies {
  public:
    Copies(const Cluster& cluster, const System& system, std::vector<double> added = {})
        : cluster_(cluster), network_(cluster_) {
        added.resize(cluster.switches.size(), 1);
        System sized = system;
        sized.aggregates.resize(cluster.switches.size());
        traffic_ = traffic_of(network_, 0, sized, added);
        const Stream stream = stream_of(cluster_, 0, sized.aggregates);
        constexpr double flow = (1538 + 78 / 2.0) / 1460;
        const bool is_atp = system.kind == System::Kind::atp || system.kind == System::Kind::hosts;
        wire_ = is_atp ? stream.wire_bytes / stream.payload_bytes : flow;
    }

    [[nodiscard]] double on(Link::Kind kind, std::size_t at) const {
        double most = 0;
        for (std::size_t i = 0; i < network_.links().size(); ++i) {
            const Link& link = network_.links()[i];
            if (link.kind == kind && link.at == at) most = std::max(most, traffic_.loads[i] / wire_);
        }
        return most;
    }
    [[nodiscard]] double worker(std::size_t at) const { return on(Link::Kind::worker, at); }
    [[nodiscard]] double uplink(std::size_t at) const { return on(Link::Kind::uplink, at); }
    [[nodiscard]] double server(std::size_t at) const { return on(Link::Kind::server, at); }
    [[nodiscard]] double card(std::size_t at) const { return on(Link::Kind::card, at); }

  private:
    Cluster cluster_;
    Network network_;
    Traffic traffic_;
    double wire_ = 1;
};

Job job_of(std::vector<unsigned> workers, ServerPlacement server = ServerPlacement::on_switch) {
    Job job = make_job("j", std::move(workers), one_bucket(bytes));
    job.server = server;
    return job;
}

// Three workers under each of two leaves; a dedicated server is connected to the root.
Cluster two_racks(ServerPlacement server = ServerPlacement::on_switch) { return racks(2, {job_of({0, 3, 3}, server)}); }

TEST(Traffic, PacketHasItsLanesAndHeaders) {
    const Stream stream = stream_of(star({job_of({4})}), 0, {true});
    EXPECT_EQ(stream.lanes, 352U);
    EXPECT_DOUBLE_EQ(stream.payload_bytes, 352 * 4);
    EXPECT_DOUBLE_EQ(stream.wire_bytes, 56 + 352 * 4 + 14 + 20 + 8 + 24);
}

TEST(Traffic, LanesFitEverySwitchThatAggregates) {
    Cluster cluster = two_racks();
    cluster.switches[1].lanes = 62;
    EXPECT_EQ(stream_of(cluster, 0, {true, true, true}).lanes, 62U);
    EXPECT_EQ(stream_of(cluster, 0, {true, false, true}).lanes, 352U);
}

TEST(Traffic, RoundTripCountsEveryHop) {
    Cluster cluster = two_racks(ServerPlacement::dedicated);
    const Stream stream = stream_of(cluster, 0, {true, true, true});
    const double hop_ns = 1000 + stream.wire_bytes * 8 / 100;
    EXPECT_NEAR(static_cast<double>(stream.round_trip.count()), 2 * 3 * hop_ns, 1);
    EXPECT_EQ(stream.window, 128);
    cluster.switches[1].queue_bytes = cluster.switches[2].queue_bytes = cluster.switches[0].queue_bytes = 0;
    const double rate = 1e9;
    EXPECT_NEAR(stream_of(cluster, 0, {true, true, true}).in_flight(rate),
                rate * 6 * hop_ns / 1e9 / stream.payload_bytes, 0.01);
}

TEST(Traffic, AggregationAtEverySwitchSendsOneCopyPerLink) {
    const Copies copies(two_racks(ServerPlacement::dedicated), atp_at({true, true, true}));
    EXPECT_DOUBLE_EQ(copies.worker(1), 1);
    EXPECT_DOUBLE_EQ(copies.uplink(1), 1);
    EXPECT_DOUBLE_EQ(copies.uplink(2), 1);
    EXPECT_DOUBLE_EQ(copies.server(0), 1);
}

TEST(Traffic, AggregationAtLeavesSendsTheServerOneCopyPerLeaf) {
    const Copies copies(two_racks(), atp_at({false, true, true}));
    EXPECT_DOUBLE_EQ(copies.uplink(1), 1);
    // The root does not aggregate, so the server cannot run on it, and asks with a FLUSH what a switch may hold.
    const double flush_bytes = ATP_HEADER_BYTES + sim::Scenario{}.overhead_bytes;
    EXPECT_DOUBLE_EQ(copies.server(0), 2 + flush_bytes / stream_of(two_racks(), 0, {false, true, true}).wire_bytes);
}

TEST(Traffic, AggregationAtTheRootSendsEveryCopyOverTheUplinks) {
    const Copies copies(two_racks(), atp_at({true, false, false}));
    EXPECT_DOUBLE_EQ(copies.uplink(1), 3);
    EXPECT_DOUBLE_EQ(copies.server(0), 0);
}

TEST(Traffic, PacketsWithoutAnAggregatorAreForwarded) {
    const Copies copies(two_racks(ServerPlacement::dedicated), atp_at({true, true, true}), {0.5, 0.75, 1});
    EXPECT_DOUBLE_EQ(copies.uplink(1), 0.75 + 0.25 * 3);
    EXPECT_DOUBLE_EQ(copies.uplink(2), 1);
    // The root adds half of the leaves' sums. It forwards the packets that a leaf did not add.
    EXPECT_DOUBLE_EQ(copies.server(0), 0.5 + 0.5 * (0.75 + 1) + 0.25 * 3);
}

TEST(Traffic, JobUnderOneLeafLoadsNoRoot) {
    const Copies copies(racks(2, {job_of({0, 3, 0}, ServerPlacement::dedicated)}), atp_at({true, true, true}));
    EXPECT_DOUBLE_EQ(copies.uplink(1), 0);
    EXPECT_DOUBLE_EQ(copies.server(1), 1);
    EXPECT_DOUBLE_EQ(copies.server(0), 0);
}

TEST(Traffic, ColocatedServersLoadTheHostsOfTheirWorkers) {
    Cluster cluster = two_racks(ServerPlacement::colocated);
    cluster.jobs[0].channels = 4;  // at the ranks 0 to 3: three under the first leaf, one under the second
    const Copies copies(cluster, atp_at({true, true, true}));
    EXPECT_DOUBLE_EQ(copies.worker(1), 1.25);
    EXPECT_DOUBLE_EQ(copies.worker(2), 1.25);
    EXPECT_DOUBLE_EQ(copies.uplink(1), 1.75);
    EXPECT_DOUBLE_EQ(copies.uplink(2), 1.25);
}

TEST(Traffic, CardOfASoftwareSwitchCarriesBothDirections) {
    Cluster cluster = two_racks();
    cluster.switches[1].card_bits_per_s = cluster.switches[0].card_bits_per_s = 100 * gbit;
    const Copies copies(cluster, atp_at({true, true, true}));
    EXPECT_DOUBLE_EQ(copies.card(1), 3 + 1);
    EXPECT_DOUBLE_EQ(copies.card(0), 2);
    EXPECT_DOUBLE_EQ(Copies(cluster, atp_at({true, false, true})).card(1), 0);
}

TEST(Traffic, OneServerReceivesEveryCopy) {
    const Copies copies(two_racks(), other(System::Kind::server));
    EXPECT_DOUBLE_EQ(copies.worker(1), 1);
    EXPECT_DOUBLE_EQ(copies.uplink(1), 3);
    EXPECT_DOUBLE_EQ(copies.server(0), 6);
}

TEST(Traffic, OneServerOnTheHostOfAWorkerReceivesTheOtherCopies) {
    const Copies copies(two_racks(ServerPlacement::colocated), other(System::Kind::server));
    EXPECT_DOUBLE_EQ(copies.worker(1), 5);
    EXPECT_DOUBLE_EQ(copies.worker(2), 1);
    EXPECT_DOUBLE_EQ(copies.uplink(1), 3);
    EXPECT_DOUBLE_EQ(copies.uplink(2), 3);
}

TEST(Traffic, ServerOnEachHostPushesAndPullsItsPart) {
    const Copies copies(racks(2, {job_of({0, 4, 2})}), other(System::Kind::servers));
    EXPECT_DOUBLE_EQ(copies.worker(1), 2 * 5 / 6.0);
    EXPECT_DOUBLE_EQ(copies.uplink(1), 2 * 4 * 2 / 6.0);
    EXPECT_DOUBLE_EQ(copies.uplink(2), 2 * 2 * 4 / 6.0);
}

TEST(Traffic, RingLoadsEachLinkNearlyTwice) {
    const Copies copies(two_racks(), other(System::Kind::ring));
    EXPECT_DOUBLE_EQ(copies.worker(1), 2 * 5 / 6.0);
    EXPECT_DOUBLE_EQ(copies.uplink(1), 2 * 5 / 6.0);
}

TEST(Traffic, JobsOnSharedHostsShareTheirLinks) {
    Job first = job_of({2});
    Job second = job_of({2});
    first.shares_hosts = second.shares_hosts = true;
    Cluster cluster = star({first, second});
    EXPECT_EQ(Network(cluster).hosts().size(), 1U);
    cluster.jobs[1].shares_hosts = false;
    EXPECT_EQ(Network(cluster).hosts().size(), 2U);
}

TEST(Traffic, SwitchServesAtMost32UnitsOfAJob) {
    const Cluster cluster = racks(2, {job_of({0, 20, 20})});
    EXPECT_TRUE(can_serve(cluster, 0, {true, true, true}));
    EXPECT_TRUE(can_serve(cluster, 0, {false, true, true}));
    EXPECT_FALSE(can_serve(cluster, 0, {true, false, false}));
    EXPECT_FALSE(can_serve(cluster, 0, {false, false, false}));
    EXPECT_FALSE(can_serve(racks(1, {job_of({0, 33})}), 0, {true, true}));
}

// As a job chooses its layout: tests/control/layout_test.cc.
TEST(Traffic, ServersOnHostsUseTheLeavesThatAggregate) {
    const Cluster cluster = racks(4, {job_of({0, 2, 2, 2, 2})});
    const Copies none(cluster, {.kind = System::Kind::hosts, .aggregates = std::vector<bool>(5)});
    EXPECT_NEAR(none.worker(1), 1.75, 1e-9) << "as in a ring";
    const Copies all(cluster, {.kind = System::Kind::hosts, .aggregates = {false, true, true, true, true}});
    EXPECT_NEAR(all.worker(1), 1.5, 1e-9);
    EXPECT_NEAR(all.uplink(1), 1.5, 1e-9);
    EXPECT_EQ(all.uplink(4), all.uplink(1));
}

}  // namespace
}  // namespace atp::plan
