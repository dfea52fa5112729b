// SPDX-License-Identifier: Apache-2.0
#include "protocol/membership.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "protocol/sender_masks.h"

namespace atp::protocol {
namespace {

TEST(Membership, StarIsOneUnitAtLevelZero) {
    const auto members = *Membership::star(3);
    EXPECT_EQ(members.workers(), 3U);
    EXPECT_EQ(members.units(), 1U);
    EXPECT_EQ(members.all_units(), 0x1U);
    EXPECT_EQ(members.unit_mask(0), 0x7U);
    const Place& place = members.place(2);
    EXPECT_EQ(place.hop, 0);
    EXPECT_EQ(place.unit, 0);
    EXPECT_EQ(place.member, 2);
    EXPECT_EQ(place.mask0, 0x7U);
    EXPECT_EQ(place.mask1, 0x1U);
}

TEST(Membership, WorkersOfRacksHaveConsecutiveRanks) {
    const auto members = *Membership::racks(3, 2);
    EXPECT_EQ(members.workers(), 6U);
    EXPECT_EQ(members.all_units(), 0x7U);
    EXPECT_EQ(members.place(3).unit, 1);
    EXPECT_EQ(members.place(3).member, 1);
    EXPECT_EQ(members.rank_of(1, 1), 3);
}

TEST(Membership, ThirtyTwoRacksOfThirtyTwoAreTheLargestJob) {
    const auto members = Membership::racks(32, 32);
    ASSERT_TRUE(members.has_value());
    EXPECT_EQ(members->workers(), 1024U);
    EXPECT_EQ(members->all_units(), 0xffffffffU);
    EXPECT_EQ(members->unit_mask(31), 0xffffffffU);
    EXPECT_FALSE(Membership::racks(33, 1).has_value());
    EXPECT_FALSE(Membership::racks(1, 33).has_value());
    EXPECT_FALSE(Membership::star(33).has_value());
}

TEST(Membership, DirectWorkerStartsAtLevelOne) {
    const auto members = Membership::make({Unit{.ranks = {0, 1}}, Unit{.ranks = {2}, .direct = true}});
    ASSERT_TRUE(members.has_value());
    EXPECT_EQ(members->place(0).hop, 0);
    EXPECT_EQ(members->place(2).hop, 1);
    EXPECT_EQ(members->place(2).unit, 1);
    EXPECT_EQ(members->place(2).mask0, 0x1U);
}

TEST(Membership, JobThatBitmapsCannotRepresentIsRefused) {
    EXPECT_FALSE(Membership::make({}).has_value()) << "no unit";
    EXPECT_FALSE(Membership::star(0).has_value()) << "no worker";
    EXPECT_FALSE(Membership::make({Unit{}}).has_value()) << "a unit without members";
    EXPECT_FALSE(Membership::make({Unit{.ranks = {0, 0}}}).has_value()) << "a rank that occurs twice in a unit";
    EXPECT_FALSE(Membership::make({Unit{.ranks = {0}}, Unit{.ranks = {0}}}).has_value()) << "a rank in two units";
    EXPECT_FALSE(Membership::make({Unit{.ranks = {0, 2}}}).has_value()) << "rank 1 is missing";
    EXPECT_FALSE(Membership::make({Unit{.ranks = {0, 1}, .direct = true}}).has_value())
        << "a direct unit of two workers";
}

// Distributes the ranks 0..n-1 over units at random.
std::vector<Unit> some_units() {
    std::vector<Unit> units;
    std::uint16_t rank = 0;
    const auto count = *rc::gen::inRange(1, 33);
    for (int i = 0; i < count; ++i) {
        Unit unit;
        unit.direct = *rc::gen::arbitrary<bool>();
        const int size = unit.direct ? 1 : *rc::gen::inRange(1, 33);
        for (int member = 0; member < size; ++member) unit.ranks.push_back(rank++);
        units.push_back(std::move(unit));
    }
    return units;
}

RC_GTEST_PROP(Membership, EveryWorkerHasItsOwnPosition, ()) {
    const auto members = *Membership::make(some_units());
    std::set<std::pair<int, int>> places;
    for (std::uint16_t rank = 0; rank < members.workers(); ++rank) {
        const Place& place = members.place(rank);
        RC_ASSERT(members.rank_of(place.unit, place.member) == rank);
        RC_ASSERT(places.insert({place.unit, place.member}).second);
        RC_ASSERT((members.unit_mask(place.unit) >> place.member & 1U) == 1U);
        RC_ASSERT(place.mask0 == members.unit_mask(place.unit));
        RC_ASSERT(place.mask1 == members.all_units());
        RC_ASSERT(place.hop == (members.unit(place.unit).direct ? 1 : 0));
    }
}

RC_GTEST_PROP(Membership, OneWrongRankIsRefused, (std::uint16_t wrong)) {
    std::vector<Unit> units = some_units();
    std::uint16_t& rank = units.back().ranks.back();  // the highest rank
    RC_PRE(wrong != rank);
    rank = wrong;
    RC_ASSERT(!Membership::make(units).has_value());
}

TEST(SenderMasks, LeaveTheOwnerOutAndItsUnitIfItIsAlone) {
    const auto members = *Membership::make({Unit{.ranks = {0, 1}}, Unit{.ranks = {2}, .direct = true}});
    const SenderMasks masks(members, 1);
    EXPECT_TRUE(masks.has_others());
    EXPECT_EQ(masks.without(0).mask0, 0b10U);
    EXPECT_EQ(masks.without(0).mask1, 0b11U);
    EXPECT_EQ(masks.without(2).mask0, 0b11U);
    EXPECT_EQ(masks.without(2).mask1, 0b01U);
    EXPECT_FALSE(SenderMasks(*Membership::star(1), 0).has_others());
}

}  // namespace
}  // namespace atp::protocol
