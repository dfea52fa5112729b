// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "clusters.h"
#include "plan/report.h"

namespace atp::plan {
namespace {

using Bound = Bottleneck::Kind;
using std::chrono::milliseconds;

Job sender(std::vector<unsigned> workers, Duration compute = {}) {
    return make_job("j", std::move(workers), one_bucket(100'000'000, compute));
}

Bottleneck bottleneck_of(const Cluster& cluster) { return make_plan(cluster).jobs[0].bottleneck; }

TEST(Plan, LeavesAloneAndRootAloneAreOptionsOnlyWithTwoLevels) {
    EXPECT_EQ(make_plan(star({sender({4})})).options.size(), 4U);
    const Plan two = make_plan(racks(2, {sender({0, 4, 4})}));
    ASSERT_EQ(two.options.size(), 7U);
    EXPECT_EQ(two.options[3].key, "leaves");
    EXPECT_EQ(two.options[5].key, "hosts");
    EXPECT_EQ(two.options[6].key, "all");
}

TEST(Plan, GainComparesTheBestOfAtpWithTheBestOfTheOthers) {
    const JobPlan job = make_plan(star({sender({4})})).jobs[0];
    const Duration best = std::min({*job.iterations[0], *job.iterations[1], *job.iterations[2]});
    EXPECT_DOUBLE_EQ(job.gain, static_cast<double>(best.count()) / static_cast<double>(job.iterations[3]->count()));
    EXPECT_NEAR(job.gain, 1.5, 0.05);  // a ring of four sends each byte 1.5 times
}

TEST(Plan, LongComputationIsTheBottleneck) {
    EXPECT_EQ(bottleneck_of(star({sender({4}, milliseconds(1000))})).kind, Bound::computation);
}

TEST(Plan, SlowestLinkIsTheBottleneck) {
    EXPECT_EQ(bottleneck_of(star({sender({4})})).kind, Bound::worker_link);

    Cluster narrow = racks(2, {sender({0, 4, 4})});
    narrow.switches[2].uplink_bits_per_s = 10 * gbit;
    EXPECT_EQ(bottleneck_of(narrow).kind, Bound::uplink);
    EXPECT_EQ(bottleneck_of(narrow).at, 2U);

    Cluster rootless = racks(2, {sender({0, 4, 4})});
    rootless.switches[0].aggregates = false;
    EXPECT_EQ(bottleneck_of(rootless).kind, Bound::server_link);

    Cluster software = star({sender({4})});
    software.switches[0].card_bits_per_s = 100 * gbit;
    EXPECT_EQ(bottleneck_of(software).kind, Bound::card);

    Cluster far = star({sender({4})});
    far.switches[0].delay = milliseconds(1);
    EXPECT_EQ(bottleneck_of(far).kind, Bound::window);
}

TEST(Plan, TooSmallMemoryIsTheBottleneck) {
    Cluster cluster = racks(2, {sender({0, 4, 4})});
    cluster.switches[2].memory_bytes = 20'000;
    EXPECT_EQ(bottleneck_of(cluster).kind, Bound::memory);
    EXPECT_EQ(bottleneck_of(cluster).at, 2U);
}

std::vector<std::vector<std::size_t>> order_of(const Plan& plan) {
    std::vector<std::vector<std::size_t>> order;
    for (const Purchase& purchase : plan.purchases) order.push_back(purchase.switches);
    return order;
}

TEST(Plan, PurchasesAreOrderedByTheirGain) {
    // The uplink of l2 is slow. If l2 aggregates, the uplink carries a quarter of the bytes.
    Cluster cluster = racks(2, {sender({0, 4, 4})});
    cluster.switches[2].uplink_bits_per_s = 10 * gbit;
    const Plan plan = make_plan(cluster);
    EXPECT_EQ(order_of(plan).front(), std::vector<std::size_t>{2});
    for (std::size_t i = 1; i < plan.purchases.size(); ++i) {
        EXPECT_LE(plan.purchases[i].iterations[0], plan.purchases[i - 1].iterations[0]);
    }
    EXPECT_EQ(plan.purchases.back().iterations[0], *plan.jobs[0].iterations.back());
}

TEST(Plan, SwitchesThatGainOnlyTogetherAreOnePurchase) {
    const Plan plan = make_plan(racks(2, {sender({0, 16, 16})}));
    EXPECT_EQ(order_of(plan), (std::vector<std::vector<std::size_t>>{{1, 2}, {0}}));
}

TEST(Plan, UnusedOrIncapableSwitchesAreNoPurchase) {
    Cluster cluster = racks(3, {sender({0, 4, 4, 0})});
    cluster.switches[1].aggregates = false;
    std::set<std::size_t> bought;
    for (const Purchase& purchase : make_plan(cluster).purchases) {
        bought.insert(purchase.switches.begin(), purchase.switches.end());
    }
    EXPECT_EQ(bought, (std::set<std::size_t>{0, 2}));
}

TEST(Plan, LessMemoryMakesIterationsLonger) {
    Cluster cluster = star({sender({8}), sender({8})});
    cluster.jobs[1].name = "k";
    for (Job& job : cluster.jobs) job.server = ServerPlacement::dedicated;
    const Plan plan = make_plan(cluster);
    EXPECT_DOUBLE_EQ(plan.shortages.front().share, 1);
    EXPECT_EQ(plan.shortages.front().iterations[0], *plan.jobs[0].iterations.back());
    for (std::size_t i = 1; i < plan.shortages.size(); ++i) {
        EXPECT_GT(plan.shortages[i].iterations[0], plan.shortages[i - 1].iterations[0]);
    }
}

TEST(Plan, ClusterWithoutAggregatingSwitchesHasGainOne) {
    Cluster cluster = star({sender({4})});
    cluster.switches[0].aggregates = false;
    const Plan plan = make_plan(cluster);
    EXPECT_EQ(plan.jobs[0].gain, 1);
    EXPECT_FALSE(plan.jobs[0].iterations.back().has_value());
    EXPECT_TRUE(plan.purchases.empty());
}

TEST(Plan, JsonAndTextStateTheWholePlan) {
    const Cluster cluster = racks(2, {sender({0, 16, 16})});
    const Plan plan = make_plan(cluster);
    const auto json = nlohmann::json::parse(to_json(cluster, plan));
    EXPECT_EQ(json["jobs"][0]["name"], "j");
    EXPECT_EQ(json["jobs"][0]["iteration_ms"].size(), 7U);
    EXPECT_EQ(json["jobs"][0]["bottleneck"]["kind"], "worker_link");
    EXPECT_EQ(json["switches"].size(), 3U);
    EXPECT_EQ(json["purchases"][0]["switches"], (std::vector<std::string>{"l1", "l2"}));
    EXPECT_EQ(json["memory"][0]["share"], 1.0);
    const std::string text = to_text(cluster, plan);
    EXPECT_NE(text.find("the links of workers under l1"), std::string::npos) << text;
    EXPECT_NE(text.find("Not modelled: "), std::string::npos);
}

}  // namespace
}  // namespace atp::plan
