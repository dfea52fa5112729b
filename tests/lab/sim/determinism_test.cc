// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>

#include "sim/swarm.h"
#include "support.h"

namespace atp::sim {
namespace {

Scenario troubled(std::uint64_t seed) {
    Scenario s;
    s.seed = seed;
    s.topology = topology("racks:2x3");
    s.jobs = 2;
    s.bytes = 40'000;
    s.aggregators = 64;
    s.paths = 3;
    s.float_share = 0.02;
    s.faults.loss = 0.02;
    s.faults.duplicate = 0.02;
    s.faults.reorder = 0.05;
    return s;
}

TEST(Determinism, SameSeedGivesTheSameReport) {
    EXPECT_EQ(to_json(run_verified(troubled(5))), to_json(run_verified(troubled(5))));
}

TEST(Determinism, OtherSeedGivesAnotherReport) {
    Report a = run_verified(troubled(5));
    Report b = run_verified(troubled(6));
    a.seed = b.seed = 0;
    EXPECT_NE(to_json(a), to_json(b));
}

TEST(Determinism, TraceLeavesTheReportUnchanged) {
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    const std::unique_ptr<std::FILE, Close> file(std::tmpfile());
    ASSERT_NE(file, nullptr);
    sim::Trace trace(file.get());
    const Scenario scenario = troubled(7);
    EXPECT_EQ(to_json(run(scenario, {.trace = &trace, .stop = nullptr, .progress = {}})), to_json(run(scenario)));
    EXPECT_GT(std::ftell(file.get()), 0);
}

TEST(Determinism, SeedOfTheSwarmGivesOneScenario) {
    const Report once = run(draw_scenario(11));
    EXPECT_EQ(to_json(run(draw_scenario(11))), to_json(once));
}

}  // namespace
}  // namespace atp::sim
