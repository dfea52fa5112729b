// SPDX-License-Identifier: Apache-2.0
#include "joining/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace atp::joining {
namespace {

TEST(JoinScenario, SeedsDrawEachFaultAndTopology) {
    std::set<Fault> faults;
    std::set<unsigned> switches;
    for (std::uint64_t seed = 1; seed <= 500; ++seed) {
        const JoinScenario scenario = draw_join_scenario(seed);
        faults.insert(scenario.fault);
        switches.insert(scenario.switches());
        if (scenario.fault >= Fault::leaf_cut) {
            EXPECT_LT(scenario.victim, scenario.leaves);
        } else if (scenario.fault >= Fault::switch_killed) {
            EXPECT_LT(scenario.victim, scenario.switches());
        } else {
            EXPECT_LT(scenario.victim, scenario.ranks_of_job());
        }
    }
    EXPECT_EQ(faults.size(), fault_kinds);
    EXPECT_EQ(switches, (std::set<unsigned>{1, 3, 4}));
}

TEST(JoinScenario, CalmScenarioIsThatOfTheSeedWithoutItsFault) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        const JoinScenario with_fault = draw_join_scenario(seed);
        const JoinScenario calm = draw_calm_scenario(seed);
        EXPECT_EQ(calm.fault, Fault::none);
        EXPECT_EQ(calm.leaves, with_fault.leaves);
        EXPECT_EQ(calm.loss, with_fault.loss);
    }
}

TEST(JoinScenario, TextNamesTheFaultAndHowLongItLasts) {
    JoinScenario scenario;
    EXPECT_THAT(text_of(scenario), testing::HasSubstr("2 ranks below one switch"));
    EXPECT_THAT(text_of(scenario), testing::HasSubstr("no fault"));
    scenario.leaves = 3;
    scenario.fault = Fault::leaf_cut_up;
    scenario.victim = 1;
    scenario.fails_at = Time{} + std::chrono::seconds(2);
    scenario.lasts = std::chrono::milliseconds(700);
    EXPECT_THAT(text_of(scenario), testing::HasSubstr("3 leaves of 2 ranks below a root"));
    EXPECT_THAT(text_of(scenario), testing::HasSubstr("leaf cut up 1 at 2000 ms for 700 ms"));
}

}  // namespace
}  // namespace atp::joining
