// SPDX-License-Identifier: Apache-2.0
#include "plan/evaluation.h"

#include <gtest/gtest.h>

#include "clusters.h"

namespace atp::plan {
namespace {

System everywhere(const Cluster& cluster) {
    return {.kind = System::Kind::atp, .aggregates = std::vector<bool>(cluster.switches.size(), true)};
}

Memories room_for_all(const Cluster& cluster) { return Memories(cluster.switches.size(), unbounded); }

std::vector<bool> all_jobs(const Cluster& cluster) { return std::vector<bool>(cluster.jobs.size(), true); }

Job busy(const char* name, std::vector<unsigned> workers) {
    return make_job(name, std::move(workers), one_bucket(10'000'000));
}

TEST(Evaluation, SingleJobHasTheWholeLinkLessHeaders) {
    const Cluster cluster = star({busy("a", {4})});
    const Network network(cluster);
    const Rush rush = Rates(network, everywhere(cluster), room_for_all(cluster)).rush(all_jobs(cluster));
    const double expected = 100e9 / 8 * (352 * 4) / (352 * 4 + 56 + 66);
    EXPECT_NEAR(rush.rates[0], expected, 1);
}

TEST(Evaluation, JobsOnSharedHostsShareLinksEvenly) {
    Cluster cluster = star({busy("a", {4}), busy("b", {4})});
    cluster.jobs[0].shares_hosts = cluster.jobs[1].shares_hosts = true;
    const Network network(cluster);
    const Rush rush = Rates(network, everywhere(cluster), room_for_all(cluster)).rush(all_jobs(cluster));
    EXPECT_NEAR(rush.rates[0], rush.rates[1], 1);
    EXPECT_NEAR(rush.rates[0] * 2, 100e9 / 8 * (352 * 4) / (352 * 4 + 56 + 66), 1);
}

TEST(Evaluation, LongDelayLimitsTheRateByTheWindow) {
    Cluster cluster = star({busy("a", {4})});
    cluster.switches[0].delay = std::chrono::milliseconds(1);
    const Network network(cluster);
    Rates rates(network, everywhere(cluster), room_for_all(cluster));
    const Share share = rates.of({true})[0];
    EXPECT_NEAR(share.rate, 128 * 352 * 4 / 2e-3, 0.001 * share.rate);  // the time of packets on the links is small
    EXPECT_EQ(share.limit, network.links().size());
    cluster.jobs[0].channels = 4;
    EXPECT_NEAR(Rates(network, everywhere(cluster), room_for_all(cluster)).rush(all_jobs(cluster)).rates[0],
                4 * share.rate, 10'000);
}

TEST(Evaluation, RequiredAggregatorsAreAtMostTheWindow) {
    const Cluster cluster = star({busy("a", {4}), busy("b", {4})});
    const Network network(cluster);
    const Rush rush = Rates(network, everywhere(cluster), room_for_all(cluster)).rush(all_jobs(cluster));
    const Stream stream = stream_of(cluster, 0, {true});
    EXPECT_DOUBLE_EQ(rush.requested[0][0], stream.in_flight(rush.rates[0]));
    EXPECT_LE(rush.requested[0][0], 256);
    EXPECT_GT(rush.requested[0][0], 100);
    EXPECT_DOUBLE_EQ(rush.added[0], 1);
}

// An aggregated packet crosses the server's link once, the others eight times: together they fill the link.
TEST(Evaluation, ScarceMemoryLoadsTheLinkOfTheServer) {
    Cluster cluster = star({busy("a", {8})});
    cluster.jobs[0].server = ServerPlacement::dedicated;
    const Network network(cluster);
    const Rush roomy = Rates(network, everywhere(cluster), room_for_all(cluster)).rush(all_jobs(cluster));
    const Rush half = Rates(network, everywhere(cluster), {roomy.requested[0][0] / 2}).rush(all_jobs(cluster));
    EXPECT_LT(half.rates[0], roomy.rates[0]);
    EXPECT_NEAR(half.rates[0] * (half.added[0] + (1 - half.added[0]) * 8), roomy.rates[0], 1e3);
    const Rush none = Rates(network, everywhere(cluster), {0}).rush(all_jobs(cluster));
    EXPECT_NEAR(none.rates[0] * 8, roomy.rates[0], 1e3);
}

TEST(Evaluation, JobBeyondTheLimitsOfAtpUsesAParameterServer) {
    const Cluster cluster = racks(2, {busy("a", {0, 20, 20})});
    const Network network(cluster);
    const System root{.kind = System::Kind::atp, .aggregates = {true, false, false}};
    const System server{.kind = System::Kind::server, .aggregates = {false, false, false}};
    EXPECT_EQ(evaluate(network, root, room_for_all(cluster))[0].iteration,
              evaluate(network, server, room_for_all(cluster))[0].iteration);
}

TEST(Evaluation, MemoryIsZeroWhereNotAggregated) {
    Cluster cluster = racks(1, {busy("a", {0, 4})});
    cluster.switches[1].memory_bytes = 64'000'000;
    EXPECT_EQ(memories_of(cluster, {false, true}), (Memories{0, 44'198}));
}

}  // namespace
}  // namespace atp::plan
