// SPDX-License-Identifier: Apache-2.0
// How the switches and racks that ranks name decide which ranks form a unit.
#include "control/rank_placement.h"

#include <gtest/gtest.h>

#include "support/fails.h"

namespace atp::control {
namespace {

using Ranks = std::vector<std::uint16_t>;

constexpr std::uint64_t root = 100;

// A rank that names the switch `leaf`, which is the root or a child of the root.
RankPath rank_at(std::uint64_t leaf, std::string rack = {}) {
    RankPath path{.switches = {leaf}, .rack = std::move(rack)};
    if (leaf != root) path.switches.push_back(root);
    return path;
}

void expect_unit(const protocol::Membership& membership, unsigned unit, const Ranks& ranks, bool direct) {
    ASSERT_LT(unit, membership.units());
    EXPECT_EQ(membership.unit(unit).ranks, ranks) << unit;
    EXPECT_EQ(membership.unit(unit).direct, direct) << unit;
}

void expect_refused(const std::vector<RankPath>& paths, Reason reason) {
    EXPECT_TRUE(fails(place_ranks(paths), {.reason = reason}));
}

TEST(Placement, RanksOfOneSwitchAreOneUnit) {
    for (const char* rack : {"", "a"}) {
        const auto placed = place_ranks(std::vector{rank_at(root, rack), rank_at(root, rack)});
        ASSERT_TRUE(placed);
        ASSERT_EQ(placed->units(), 1U);
        expect_unit(*placed, 0, {0, 1}, false);
    }
}

TEST(Placement, SwitchesBelowTheRootAreUnitsAndRanksOfTheRootAreDirect) {
    const auto placed = place_ranks(std::vector{rank_at(7), rank_at(root), rank_at(5), rank_at(7), rank_at(root)});
    ASSERT_TRUE(placed);
    ASSERT_EQ(placed->units(), 4U);
    expect_unit(*placed, 0, {0, 3}, false);
    expect_unit(*placed, 1, {1}, true);
    expect_unit(*placed, 2, {2}, false);
    expect_unit(*placed, 3, {4}, true);
}

TEST(Placement, RacksOfOneSwitchAreUnitsInTheOrderOfRanks) {
    const auto placed = place_ranks(
        std::vector{rank_at(root, "b"), rank_at(root, "a"), rank_at(root), rank_at(root, "b"), rank_at(root, "a")});
    ASSERT_TRUE(placed);
    ASSERT_EQ(placed->units(), 3U);
    expect_unit(*placed, 0, {0, 3}, false);
    expect_unit(*placed, 1, {1, 4}, false);
    expect_unit(*placed, 2, {2}, true);
    EXPECT_EQ(placed->place(4).hop, 0);
    EXPECT_EQ(placed->place(2).hop, 1);
}

TEST(Placement, RackOfOneRankIsAUnit) {
    const auto placed = place_ranks(std::vector{rank_at(root, "a"), rank_at(root)});
    ASSERT_TRUE(placed);
    ASSERT_EQ(placed->units(), 2U);
    expect_unit(*placed, 0, {0}, false);
    expect_unit(*placed, 1, {1}, true);
}

TEST(Placement, RackAndSwitchAreUnitsOfOneTree) {
    const auto placed = place_ranks(std::vector{rank_at(7), rank_at(root, "a"), rank_at(7), rank_at(root, "a")});
    ASSERT_TRUE(placed);
    ASSERT_EQ(placed->units(), 2U);
    expect_unit(*placed, 0, {0, 2}, false);
    expect_unit(*placed, 1, {1, 3}, false);
}

TEST(Placement, RackOfASwitchBelowTheRootIsRefused) {
    expect_refused({rank_at(7, "a"), rank_at(root)}, Reason::unsupported);
}

TEST(Placement, SwitchesWithoutACommonRootAreRefused) {
    RankPath elsewhere = rank_at(root);
    elsewhere.switches.front() = 9;
    expect_refused({rank_at(root), elsewhere}, Reason::mismatched);
}

TEST(Placement, ThreeLevelsOfSwitchesAreRefusedUnlessAllRanksNameOneSwitch) {
    const RankPath deep{.rank = 1, .switches = {8, 7, root}};
    const auto placed = place_ranks(std::vector{rank_at(root), deep});
    EXPECT_TRUE(fails(placed, {.reason = Reason::unsupported,
                               .text = ::testing::HasSubstr("the path of rank 1 has 3 switches; use at most 2")}));
    const auto one_switch = place_ranks(std::vector{deep, deep});
    ASSERT_TRUE(one_switch) << "no packet goes further up";
    ASSERT_EQ(one_switch->units(), 1U);
    expect_unit(*one_switch, 0, {0, 1}, false);
}

TEST(Placement, MoreThan32MembersOrUnitsAreRefused) {
    std::vector<RankPath> one_rack, many_racks;
    for (int rank = 0; rank < 32; ++rank) {
        one_rack.push_back(rank_at(root, "a"));
        many_racks.push_back(rank_at(root, std::to_string(rank)));
    }
    EXPECT_TRUE(place_ranks(one_rack));
    EXPECT_TRUE(place_ranks(many_racks));
    one_rack.push_back(rank_at(root, "a"));
    many_racks.push_back(rank_at(root, "one more"));
    expect_refused(one_rack, Reason::too_large);
    expect_refused(many_racks, Reason::too_large);
}

}  // namespace
}  // namespace atp::control
