// SPDX-License-Identifier: Apache-2.0
#include "sim/swarm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "support.h"

namespace atp::sim {
namespace {

TEST(Swarm, EverySeedEndsInExactSumsAfterHealing) {
    std::string failures;
    const SwarmSummary summary = run_swarm(
        {.first_seed = 1,
         .runs = 150,
         .threads = 2,
         .profile = SwarmProfile::mixed,
         .stop = nullptr,
         .failed = [&](const Report& report) { failures += std::to_string(report.seed) + ": " + failures_of(report); },
         .progress = {}});
    EXPECT_EQ(summary.runs, 150U);
    EXPECT_EQ(summary.failures, 0U) << failures;
    // The faults took place.
    EXPECT_GT(summary.lost, 1000U);
    EXPECT_GT(summary.resends, 1000U);
    EXPECT_GT(summary.incarnations, 250U);
    EXPECT_GT(summary.formed_again, 45U);
}

TEST(Swarm, CalmSeedsLetNoRankFail) {
    const SwarmSummary summary = run_swarm({.first_seed = 1,
                                            .runs = 40,
                                            .threads = 2,
                                            .profile = SwarmProfile::calm,
                                            .stop = nullptr,
                                            .failed = {},
                                            .progress = {}});
    EXPECT_EQ(summary.failures, 0U);
    EXPECT_EQ(summary.errors, 0U);
    EXPECT_EQ(summary.formed_again, 0U);
}

TEST(Swarm, SeedsDrawEveryTopologyPlacementAndFault) {
    std::set<TopologySpec::Shape> shapes;
    std::set<ServerPlacement> places;
    std::set<Aggregation> aggregations;
    std::set<std::uint8_t> windows;
    bool one_aggregator = false;
    bool wraps = false;
    bool crash = false;
    unsigned switchml = 0;
    unsigned beside_atp = 0;
    unsigned lossless = 0;
    unsigned in_path = 0;
    unsigned groups = 0;
    unsigned dynamic = 0;
    unsigned int32_paths = 0;
    unsigned shared_memory = 0;
    unsigned keys = 0;
    for (std::uint64_t seed = 1; seed <= 900; ++seed) {
        const Scenario s = draw_scenario(seed);
        ASSERT_FALSE(problem_of(s).has_value());
        shapes.insert(s.topology.shape);
        places.insert(s.server);
        aggregations.insert(s.aggregation);
        windows.insert(s.window_log2);
        one_aggregator |= s.aggregators == 1;
        wraps |= s.first_seq > 0xffffff00U;
        crash |= s.ends_incarnations();
        const unsigned jobs = s.switchml_jobs(s.jobs);
        switchml += jobs != 0 ? 1 : 0;
        beside_atp += jobs != 0 && jobs != s.jobs ? 1 : 0;
        lossless += s.switchml.mode == switchml::Mode::lossless ? 1 : 0;
        in_path += s.in_path ? 1U : 0U;
        groups += s.groups ? 1U : 0U;
        keys += s.keys ? 1U : 0U;
        dynamic += s.scaling == tensor::Scaling::dynamic ? 1U : 0U;
        shared_memory += s.ranks_of_host > 1 ? 1U : 0U;
        int32_paths += s.int32_switch ? 1U : 0U;
    }
    EXPECT_EQ(shapes.size(), 4U);
    EXPECT_EQ(places.size(), 3U);
    EXPECT_EQ(aggregations.size(), 3U);
    EXPECT_GE(windows.size(), 6U);
    EXPECT_TRUE(one_aggregator && wraps && crash);
    EXPECT_GT(switchml, 20U);
    EXPECT_GT(beside_atp, 0U);
    EXPECT_GT(lossless, 0U);
    EXPECT_GT(std::min({in_path, groups, keys, dynamic, shared_memory}), 50U);
    EXPECT_GT(int32_paths, 10U);
}

}  // namespace
}  // namespace atp::sim
