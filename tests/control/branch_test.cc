// SPDX-License-Identifier: Apache-2.0
#include "control/branch.h"

#include <gtest/gtest.h>

#include <set>

#include "join_tree_fixture.h"

namespace atp::control {
namespace {

std::set<std::string> receivers(const Branch& branch, std::uint32_t bits) {
    std::set<std::string> found;
    branch.for_each_child(bits, [&](const Branch::Child& child) { found.insert(to_string(child.address)); });
    return found;
}

TEST(Branch, BranchOfARackIsCompleteAfterAllMembersHaveJoined) {
    Branch branch = Branch::of(join_of_member(0, 3, 0));
    EXPECT_EQ(branch.mask, 0x7U);
    EXPECT_TRUE(branch.deserted());
    for (unsigned member = 0; member < 3; ++member) {
        EXPECT_FALSE(branch.complete());
        branch.attach(join_of_member(0, 3, member, 4), worker(4 + member), Time{});
    }
    EXPECT_TRUE(branch.complete());
    EXPECT_EQ(branch.units().size(), 1U);
    EXPECT_EQ(branch.units()[0].ranks, (std::vector<std::uint16_t>{4, 5, 6}));
    EXPECT_EQ(branch.units()[0].members, 0x7U);
}

TEST(Branch, ChildOnThePathToARankIsTheMemberItselfOrItsSwitch) {
    Branch branch = Branch::of(join_of_unit(0, 0, 2, 0x3));
    branch.attach(join_of_unit(0, 0, 2, 0x3), host(1), Time{});
    branch.attach(join_of_unit(1, 2, 2, 0x3), host(2), Time{});
    ASSERT_NE(branch.child_to(1), nullptr);
    EXPECT_EQ(branch.child_to(1)->address, host(1));
    EXPECT_EQ(branch.child_to(3)->address, host(2));
    EXPECT_EQ(branch.child_to(4), nullptr);
    EXPECT_EQ(branch.child_to(Branch::max_ranks), nullptr);
}

TEST(Branch, MemberThatLeavesIsMissingAndReceivesNothing) {
    Branch branch = Branch::of(join_of_member(0, 2, 0));
    branch.attach(join_of_member(0, 2, 0), worker(0), Time{});
    branch.attach(join_of_member(0, 2, 1), worker(1), Time{});
    EXPECT_EQ(branch.receivers, 2U);
    branch.detach({.bit = 1});
    EXPECT_EQ(branch.at({.bit = 1}), nullptr);
    EXPECT_EQ(branch.missing_members(0), 0x2U);
    EXPECT_EQ(receivers(branch, branch.mask), std::set<std::string>{to_string(worker(0))});
    branch.detach({.bit = 0});
    EXPECT_TRUE(branch.deserted());
    EXPECT_EQ(branch.receivers, 0U);
}

TEST(Branch, MembersThatJoinTheRootSeparatelyCountAsOneChild) {
    const auto join_of = [](unsigned member) {
        wire::Join join = join_of_member(1, 2, member, 2, 0x3);
        join.level = 1;
        return join;
    };
    Branch branch = Branch::of(join_of(0));
    branch.attach(join_of_unit(0, 0, 2, 0x3), host(1), Time{});
    branch.attach(join_of(0), worker(2), Time{});
    EXPECT_FALSE(branch.complete());
    EXPECT_EQ(branch.missing_members(1), 0x2U);
    branch.attach(join_of(1), worker(3), Time{});
    EXPECT_TRUE(branch.complete());
    EXPECT_EQ(branch.child_to(3)->address, worker(3));
    EXPECT_EQ(receivers(branch, 0x2), (std::set<std::string>{to_string(worker(2)), to_string(worker(3))}));
    const auto membership = branch.membership();
    ASSERT_TRUE(membership);
    EXPECT_EQ(membership->workers(), 4U);
    branch.detach({.bit = 1, .member = 0});
    EXPECT_FALSE(branch.complete());
    EXPECT_FALSE(branch.deserted());
}

TEST(Branch, RepeatedRankGivesNoMembership) {
    Branch branch = Branch::of(join_of_unit(0, 0, 2, 0x3));
    branch.attach(join_of_unit(0, 0, 2, 0x3), host(1), Time{});
    branch.attach(join_of_unit(1, 1, 2, 0x3), host(2), Time{});  // rank 1 is in both units
    ASSERT_TRUE(branch.complete());
    EXPECT_FALSE(branch.membership());
}

TEST(Branch, EndpointsConvertToTheSameAddresses) {
    for (const char* text : {"10.1.2.3:4791", "[2001:db8::7]:65535"}) {
        const wire::Address address = *wire::Address::parse(text);
        EXPECT_EQ(address_of(endpoint_of(address)), address);
    }
    EXPECT_EQ(endpoint_of({}).family, 0);
    EXPECT_EQ(address_of({}).family(), wire::Family::none);
}

// The interval is over: `child` completed all fragments.
void complete_fragments(Branch& branch, unsigned child) {
    Time now{std::chrono::seconds(50)};
    for (int i = 0; i < 10; ++i) {
        now += std::chrono::milliseconds(100);
        branch.pace.handle_completed(1U << child, std::chrono::milliseconds(60), now);
    }
    branch.pace.handle_time(now + std::chrono::seconds(1), std::chrono::seconds(1));
}

TEST(Branch, PaceOfARackNamesTheMemberThatIsLast) {
    Branch branch = Branch::of(join_of_member(2, 3, 0, 4, 0x7));
    EXPECT_EQ(branch.pace_below().share_percent, 0);
    for (unsigned member = 0; member < 3; ++member) {
        branch.attach(join_of_member(2, 3, member, 4, 0x7), worker(4 + member), Time{});
    }
    EXPECT_EQ(branch.pace_below().share_percent, 0);
    complete_fragments(branch, 1);
    const wire::Pace pace = branch.pace_of_all();
    EXPECT_EQ(pace.share_percent, 100);
    EXPECT_EQ(pace.unit, 2);
    EXPECT_EQ(pace.member, 1);
    EXPECT_EQ(branch.rank_of(pace), 5);
}

TEST(Branch, PaceOfARootNamesTheMemberThatItsLeafReports) {
    Branch branch = Branch::of(join_of_unit(0, 0, 2, 0x3));
    branch.attach(join_of_unit(0, 0, 2, 0x3), host(1), Time{});
    wire::Join join = join_of_unit(1, 2, 2, 0x3);
    join.pace = {.share_percent = 80, .unit = 1, .member = 1};
    branch.attach(join, host(2), Time{});
    complete_fragments(branch, 1);
    EXPECT_EQ(branch.pace_below().unit, 1);
    EXPECT_FALSE(branch.pace_below().whole_unit);
    EXPECT_EQ(branch.rank_of(branch.pace_below()), 3);
}

TEST(Branch, PaceOfARootNamesTheUnitIfNoMemberOfItIsMostlyLast) {
    Branch branch = Branch::of(join_of_unit(0, 0, 2, 0x3));
    wire::Join join = join_of_unit(0, 0, 2, 0x3);
    join.pace = {.share_percent = 50, .unit = 0, .member = 1};
    branch.attach(join, host(1), Time{});
    branch.attach(join_of_unit(1, 2, 1, 0x3), host(2), Time{});
    complete_fragments(branch, 0);
    EXPECT_TRUE(branch.pace_below().whole_unit);
    EXPECT_EQ(branch.rank_of(branch.pace_below()), std::nullopt);
    complete_fragments(branch, 1);
    EXPECT_FALSE(branch.pace_below().whole_unit) << "a unit of one member";
    EXPECT_EQ(branch.rank_of(branch.pace_below()), 2);
}

TEST(Branch, PaceOfTheParentCountsBeforeTheOwn) {
    Branch branch = Branch::of(join_of_member(0, 2, 0));
    for (unsigned member = 0; member < 2; ++member) {
        branch.attach(join_of_member(0, 2, member), worker(member), Time{});
    }
    complete_fragments(branch, 1);
    branch.pace_above = {.share_percent = 90, .unit = 3, .member = 7};
    EXPECT_EQ(branch.pace_of_all().unit, 3);
    EXPECT_EQ(branch.rank_of(branch.pace_of_all()), std::nullopt) << "a rank of another rack";
    EXPECT_EQ(branch.pace_below().member, 1);
}

}  // namespace
}  // namespace atp::control
