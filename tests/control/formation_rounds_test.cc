// SPDX-License-Identifier: Apache-2.0
#include "control/formation_rounds.h"

#include <gtest/gtest.h>

#include <set>

namespace atp::control {
namespace {

Error with(Reason reason) { return {.operation = Operation::join, .reason = reason}; }

TEST(NetworkAttempts, DifferentRootsAreLookedAtFiveTimes) {
    NetworkAttempts attempts;
    for (const std::string_view name : {"network-0", "network-1", "network-2", "network-3"}) {
        EXPECT_EQ(attempts.name(), name);
        EXPECT_TRUE(attempts.look_again(with(Reason::mismatched)));
    }
    EXPECT_EQ(attempts.name(), "network-4");
    EXPECT_FALSE(attempts.look_again(with(Reason::mismatched)));
}

TEST(NetworkAttempts, OtherFailuresEndTheFormationAtOnce) {
    for (const Reason reason : {Reason::malformed, Reason::unsupported, Reason::too_large}) {
        NetworkAttempts attempts;
        EXPECT_FALSE(attempts.look_again(with(reason)));
        EXPECT_EQ(attempts.name(), "network-0");
    }
}

TEST(FormationRounds, EachRoundIsToldOfAFailureOnceAndTheFirstIsThatOfAllRanks) {
    EXPECT_EQ(formation_rounds.front(), "facts");
    EXPECT_EQ(std::set(formation_rounds.begin(), formation_rounds.end()).size(), 11U);
}

}  // namespace
}  // namespace atp::control
