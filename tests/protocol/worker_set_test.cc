// SPDX-License-Identifier: Apache-2.0
#include "protocol/worker_set.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

namespace atp::protocol {
namespace {

atp_header set_header(std::uint32_t units, std::uint32_t members, bool whole) {
    atp_header header{};
    header.bitmap1 = units;
    header.bitmap0 = members;
    header.flags = whole ? std::uint16_t{ATP_FLAG_WHOLE} : std::uint16_t{0};
    return header;
}

// Ranks of the set, one by one.
std::set<unsigned> ranks_in_set(const WorkerSet& set, const Membership& membership) {
    std::set<unsigned> ranks;
    for (unsigned unit = 0; unit < membership.units(); ++unit) {
        for_each_bit(set.members_of(unit, membership),
                     [&](unsigned member) { ranks.insert(membership.rank_of(unit, member)); });
    }
    return ranks;
}

TEST(WorkerSet, BitsAreVisitedInAscendingOrder) {
    std::vector<unsigned> visited;
    for_each_bit(0x80000015U, [&](unsigned bit) { visited.push_back(bit); });
    EXPECT_EQ(visited, (std::vector<unsigned>{0, 2, 4, 31}));
    for_each_bit(0, [](unsigned) { FAIL(); });
}

TEST(WorkerSet, MembersOfOneUnitAreTheirRanks) {
    const auto racks = *Membership::racks(3, 4);
    const auto set = WorkerSet::of(set_header(0x2, 0x9, false), racks);
    ASSERT_TRUE(set.has_value());
    EXPECT_EQ(ranks_in_set(*set, racks), (std::set<unsigned>{4, 7}));
    EXPECT_EQ(set->count(racks), 2U);
    EXPECT_EQ(set->unit(), 1U);
    EXPECT_FALSE(set->single_worker());
    EXPECT_TRUE(WorkerSet::of(set_header(0x2, 0x8, false), racks)->single_worker());
}

TEST(WorkerSet, WholeUnitsIgnoreTheBitmapOfMembers) {
    const auto racks = *Membership::racks(3, 4);
    const auto set = WorkerSet::of(set_header(0x5, 0x1, true), racks);
    ASSERT_TRUE(set.has_value());
    EXPECT_EQ(ranks_in_set(*set, racks), (std::set<unsigned>{0, 1, 2, 3, 8, 9, 10, 11}));
    EXPECT_EQ(set->count(racks), 8U);
    EXPECT_FALSE(set->single_worker());
}

TEST(WorkerSet, SetWithUnknownWorkersOrNoneIsRefused) {
    const auto racks = *Membership::racks(2, 3);
    EXPECT_FALSE(WorkerSet::of(set_header(0, 0x1, false), racks).has_value()) << "no unit";
    EXPECT_FALSE(WorkerSet::of(set_header(0, 0x1, true), racks).has_value()) << "whole, but no unit";
    EXPECT_FALSE(WorkerSet::of(set_header(0x4, 0x1, false), racks).has_value()) << "a third unit, which the job lacks";
    EXPECT_FALSE(WorkerSet::of(set_header(0x7, 0, true), racks).has_value())
        << "whole units, one of which the job lacks";
    EXPECT_FALSE(WorkerSet::of(set_header(0x3, 0x1, false), racks).has_value()) << "members of two units";
    EXPECT_FALSE(WorkerSet::of(set_header(0x1, 0, false), racks).has_value()) << "no member";
    EXPECT_FALSE(WorkerSet::of(set_header(0x1, 0x8, false), racks).has_value()) << "a fourth member of a unit of three";
}

TEST(WorkerSet, RelationNamesEachOfTheFourCases) {
    const auto racks = *Membership::racks(2, 3);
    const auto relation = [&](std::uint32_t units, std::uint32_t members, bool whole,
                              std::vector<std::uint32_t> included) {
        return WorkerSet::of(set_header(units, members, whole), racks)->relation_to(included, racks);
    };
    EXPECT_EQ(relation(0x1, 0x1, false, {0, 0}), SetRelation::disjoint);
    EXPECT_EQ(relation(0x1, 0x1, false, {0x6, 0x7}), SetRelation::disjoint);
    EXPECT_EQ(relation(0x1, 0x3, false, {0x1, 0}), SetRelation::contains);
    EXPECT_EQ(relation(0x3, 0, true, {0x5, 0x2}), SetRelation::contains);
    EXPECT_EQ(relation(0x1, 0x1, false, {0x1, 0}), SetRelation::inside);
    EXPECT_EQ(relation(0x2, 0, true, {0x1, 0x7}), SetRelation::inside);
    EXPECT_EQ(relation(0x1, 0x3, false, {0x6, 0}), SetRelation::overlaps);
    EXPECT_EQ(relation(0x1, 0, true, {0x1, 0x1}), SetRelation::overlaps);
}

RC_GTEST_PROP(WorkerSet, RelationAgreesWithSetsOfRanks, ()) {
    const auto racks = *Membership::racks(3, 3);
    const auto units = *rc::gen::inRange<std::uint32_t>(1, 8);
    const bool whole = *rc::gen::arbitrary<bool>();
    const auto members = *rc::gen::inRange<std::uint32_t>(1, 8);
    const auto set = WorkerSet::of(set_header(whole ? units : units & (~units + 1U), members, whole), racks);
    RC_ASSERT(set.has_value());
    std::vector<std::uint32_t> included;
    std::set<unsigned> theirs;
    for (unsigned unit = 0; unit < 3; ++unit) {
        included.push_back(*rc::gen::inRange<std::uint32_t>(0, 8));
        for_each_bit(included.back(), [&](unsigned member) { theirs.insert(racks.rank_of(unit, member)); });
    }
    const std::set<unsigned> ours = ranks_in_set(*set, racks);
    std::set<unsigned> common;
    std::set<unsigned> all = theirs;
    for (const unsigned rank : ours) {
        if (theirs.contains(rank)) common.insert(rank);
        all.insert(rank);
    }
    const SetRelation expected = common.empty()     ? SetRelation::disjoint
                                 : all == theirs    ? SetRelation::inside
                                 : common == theirs ? SetRelation::contains
                                                    : SetRelation::overlaps;
    RC_ASSERT(set->relation_to(included, racks) == expected);
    RC_ASSERT(set->count(racks) == ours.size());
}

TEST(WorkerSet, AuditSumAddsTheWordOfEachWorker) {
    const auto racks = *Membership::racks(2, 2);
    const ChannelConfig channel{.job = 5, .token = 6, .channel = 7};
    const auto set = WorkerSet::of(set_header(0x3, 0, true), racks);
    std::uint32_t expected = 0;
    for (std::uint32_t rank = 0; rank < 4; ++rank) expected += channel.audit_of(9, rank);
    EXPECT_EQ(set->audit_sum(channel, 9, racks), expected);
    EXPECT_EQ(WorkerSet::of(set_header(0x2, 0x2, false), racks)->audit_sum(channel, 9, racks), channel.audit_of(9, 3));
}

}  // namespace
}  // namespace atp::protocol
