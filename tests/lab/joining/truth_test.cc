// SPDX-License-Identifier: Apache-2.0
#include "joining/truth.h"

#include <gtest/gtest.h>

namespace atp::joining {
namespace {

using std::chrono::seconds;

JoinScenario racks_with(Fault fault, std::uint8_t victim) {
    JoinScenario scenario;
    scenario.leaves = 2;
    scenario.jobs = 2;
    scenario.fault = fault;
    scenario.victim = victim;
    scenario.fails_at = Time{} + seconds(5);
    return scenario;
}

Error naming(const std::string& peer) { return {.peer = peer}; }
Time at(int second) { return Time{} + seconds(second); }

TEST(Truth, ErrorMustNameWhatIsAtFault) {
    const JoinScenario scenario = racks_with(Fault::rank_killed, 3);
    const Truth truth(scenario);
    EXPECT_FALSE(truth.objection_to(0, naming("rank 3"), at(6)));
    EXPECT_TRUE(truth.objection_to(0, naming("rank 2"), at(6)));
    EXPECT_TRUE(truth.objection_to(0, naming("ranks 2, 3"), at(6)));
    EXPECT_TRUE(truth.objection_to(0, naming(""), at(6)));
    EXPECT_TRUE(truth.objection_to(0, naming("rank 3"), at(4))) << "nothing has failed yet";
    EXPECT_TRUE(truth.objection_to(1, naming("rank 3"), at(6))) << "another job";
}

TEST(Truth, FailedSwitchIsNamedItselfAndACutEdgeByEitherEnd) {
    const std::string leaf = to_string(address_of_switch(1));
    const std::string root = to_string(address_of_switch(2));
    const JoinScenario killed = racks_with(Fault::switch_killed, 1);
    EXPECT_FALSE(Truth(killed).objection_to(1, naming(leaf), at(6)));
    EXPECT_TRUE(Truth(killed).objection_to(1, naming(root), at(6)));
    const JoinScenario cut = racks_with(Fault::leaf_cut_down, 1);
    EXPECT_FALSE(Truth(cut).objection_to(0, naming(leaf), at(6)));
    EXPECT_FALSE(Truth(cut).objection_to(0, naming(root), at(6)));
    EXPECT_TRUE(Truth(cut).objection_to(0, naming(to_string(address_of_switch(0))), at(6)));
}

TEST(Truth, WithoutAFaultOrAfterAShortPauseNoRankMayFail) {
    EXPECT_TRUE(Truth(racks_with(Fault::none, 0)).objection_to(0, naming("rank 0"), at(6)));
    JoinScenario pause = racks_with(Fault::rank_paused, 0);
    pause.lasts = std::chrono::milliseconds(100);
    EXPECT_TRUE(Truth(pause).is_harmless());
    EXPECT_TRUE(Truth(pause).objection_to(0, naming("rank 0"), at(6)));
    JoinScenario restart = racks_with(Fault::switch_killed, 2);
    restart.lasts = std::chrono::milliseconds(100);
    EXPECT_FALSE(Truth(restart).is_harmless()) << "the root loses the sums";
}

}  // namespace
}  // namespace atp::joining
