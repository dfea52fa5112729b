// SPDX-License-Identifier: Apache-2.0
// Results by multicast: when the tree sends JOINED to the group, and when all results go to it.
#include <gtest/gtest.h>

#include "join_tree_fixture.h"

namespace atp::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

wire::Address group() { return *wire::Address::parse("239.192.7.8:4792"); }

JoinTreeConfig sends_to_groups() {
    JoinTreeConfig config;
    config.groups = *parse_ranges("239.192.0.0/16");
    return config;
}

wire::Join with_group(wire::Join join, bool receives = false) {
    join.terms.group = endpoint_of(group());
    join.receives_group = receives;
    return join;
}

wire::Join member(unsigned rank, bool receives) { return with_group(join_of_member(0, 2, rank), receives); }

bool by_group(Tree& tree) { return tree.tree.find(key)->by_group; }

TEST(JoinTreeGroup, ResultsGoToTheGroupAfterEveryMemberReceivesIt) {
    Tree star(sends_to_groups());
    for (unsigned rank = 0; rank < 2; ++rank) star.join(member(rank, false), worker(rank));
    EXPECT_EQ(star.tree.find(key)->group, group());
    EXPECT_FALSE(by_group(star));
    star.join(member(0, true), worker(0));
    EXPECT_FALSE(by_group(star)) << "member 1 does not receive the group";
    star.join(member(1, true), worker(1));
    EXPECT_TRUE(by_group(star));
}

TEST(JoinTreeGroup, ResultsGoOutAsCopiesIfOneMemberLeavesOrDoesNotReceiveTheGroup) {
    Tree star(sends_to_groups());
    for (unsigned rank = 0; rank < 2; ++rank) star.join(member(rank, true), worker(rank));
    EXPECT_TRUE(by_group(star));
    star.join(member(1, false), worker(1));
    EXPECT_FALSE(by_group(star));
    star.join(member(1, true), worker(1));
    EXPECT_TRUE(by_group(star));
    star.leave(0, 0, worker(0));
    EXPECT_FALSE(by_group(star)) << "one member is missing";
}

TEST(JoinTreeGroup, JoinedGoesToTheGroupEvery50MsUntilAllMembersReceiveItThenEverySecond) {
    Tree star(sends_to_groups());
    star.join(member(0, false), worker(0));
    ASSERT_EQ(star.sent_to<wire::Joined>(group()).size(), 1U);
    EXPECT_FALSE(star.told_ready(group()));
    EXPECT_EQ(star.sent.back().near, worker(0)) << "the message to the group takes the route to this member";
    star.join(member(1, false), worker(1));
    EXPECT_EQ(star.sent_to<wire::Joined>(group()).size(), 1U)
        << "the second JOIN within 50 ms sends nothing to the group";
    star.pass(milliseconds(50));
    star.join(member(1, false), worker(1));
    EXPECT_EQ(star.sent_to<wire::Joined>(group()).size(), 2U);
    EXPECT_TRUE(star.told_ready(group()));

    star.pass(milliseconds(50));
    for (unsigned rank = 0; rank < 2; ++rank) star.join(member(rank, true), worker(rank));
    star.forget();
    for (int tenth = 0; tenth < 20; ++tenth) {
        star.pass(milliseconds(100));
        star.join(member(0, true), worker(0));
    }
    EXPECT_EQ(star.sent_to<wire::Joined>(group()).size(), 2U) << "two messages in 2 s";
}

TEST(JoinTreeGroup, JobWithoutAGroupGetsResultsByUnicast) {
    Tree star(sends_to_groups());
    for (unsigned rank = 0; rank < 2; ++rank) {
        wire::Join join = join_of_member(0, 2, rank);
        join.receives_group = true;
        star.join(join, worker(rank));
    }
    EXPECT_FALSE(by_group(star));
    EXPECT_TRUE(star.sent_to<wire::Joined>(group()).empty());
}

// ---------------------------------------------------------------------------------------------- Copies in the path

JoinTreeConfig asks_path() {
    JoinTreeConfig config;
    config.asks_path = true;
    return config;
}

wire::Join without_group(unsigned rank, bool receives) {
    wire::Join join = join_of_member(0, 2, rank);
    join.receives_group = receives;
    return join;
}

TEST(JoinTreeGroup, H108_OneMemberGetsResultsAfterEveryMemberReceivesCopies) {
    Tree star(asks_path());
    for (unsigned rank = 0; rank < 2; ++rank) star.join(without_group(rank, false), worker(rank));
    const Branch& branch = *star.tree.find(key);
    EXPECT_NE(branch.group_number, 0U);
    EXPECT_EQ(branch.once_to, worker(0));
    EXPECT_FALSE(branch.by_group);
    star.join(without_group(0, true), worker(0));
    EXPECT_FALSE(branch.by_group) << "member 1 receives no copies";
    star.join(without_group(1, true), worker(1));
    EXPECT_TRUE(branch.by_group);
    star.join(without_group(1, false), worker(1));
    EXPECT_FALSE(branch.by_group) << "the switch in the path ended, or does not copy for member 1";
}

TEST(JoinTreeGroup, H108_JoinedForAllGoesToOneMemberAsOftenAsItJoins) {
    Tree star(asks_path());
    const auto for_all = [&] {
        return std::ranges::count_if(star.sent_to<wire::Joined>(worker(0)), [&](const wire::Joined& joined) {
            return joined.token == star.tree.find(key)->group_number && joined.nonce == 0;
        });
    };
    star.join(without_group(0, false), worker(0));
    EXPECT_EQ(for_all(), 0) << "one member needs no copies";
    star.join(without_group(1, false), worker(1));
    EXPECT_EQ(for_all(), 1);
    for (int tenth = 0; tenth < 20; ++tenth) {
        star.pass(milliseconds(125));
        for (unsigned rank = 0; rank < 2; ++rank) star.join(without_group(rank, false), worker(rank));
    }
    EXPECT_EQ(for_all(), 11) << "ten more in 2.5 s";
}

TEST(JoinTreeGroup, H108_SwitchesGetNoJoinedForAll) {
    Tree root(asks_path());
    root.join(join_of_unit(0, 0, 2, 0x3), host(1));
    root.join(join_of_unit(1, 2, 1, 0x3, true), worker(2));
    EXPECT_EQ(root.tree.find(key)->once_to, wire::Address()) << "a switch would take it for forged";
}

TEST(JoinTreeGroup, OnlyTheLastSwitchSendsToTheGroup) {
    Tree rack(below(host(1)));
    for (std::uint16_t rank = 0; rank < 2; ++rank) {
        rack.join(with_group(join_of_member(0, 2, rank, 0, 0x3), true), worker(rank));
    }
    rack.joined(true, host(1));
    EXPECT_FALSE(by_group(rack)) << "the rack's switch sends copies: only the last switch sends to the group";
    EXPECT_TRUE(rack.sent_to<wire::Joined>(group()).empty());
    const auto up = rack.sent_to<wire::Join>(host(1));
    ASSERT_FALSE(up.empty());
    EXPECT_EQ(up[0].terms.group, endpoint_of(group()));

    Tree root(sends_to_groups());
    root.join(up[0], host(2));
    root.join(with_group(join_of_unit(1, 2, 1, 0x3, true), true), worker(2));
    EXPECT_FALSE(by_group(root)) << "a switch, which receives no group, is a member of the root";
}

TEST(JoinTreeGroup, ServerOnAnotherHostSendsNothingToTheGroup) {
    const auto elsewhere = [](wire::Join join) {
        join.terms.server = endpoint_of(host(50));
        return join;
    };
    Tree last(sends_to_groups());
    for (unsigned rank = 0; rank < 2; ++rank) last.join(elsewhere(member(rank, true)), worker(rank));
    EXPECT_TRUE(by_group(last));
    Tree server;
    server.join(last.sent_to<wire::Join>(host(50)).front(), host(1));
    EXPECT_TRUE(server.sent_to<wire::Joined>(group()).empty());
}

TEST(JoinTreeGroup, MemberOfAnotherFamilyGetsNoGroupMessages) {
    Tree star(sends_to_groups());
    star.join(member(0, false), *wire::Address::parse("[2001:db8::1]:4791"));
    EXPECT_TRUE(star.sent_to<wire::Joined>(group()).empty());
}

}  // namespace
}  // namespace atp::control
