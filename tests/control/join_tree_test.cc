// SPDX-License-Identifier: Apache-2.0
// When members join, leave and expire, when the tree is ready, and which members it notifies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "join_tree_fixture.h"

namespace atp::control {
namespace {

// --- readiness

TEST(JoinTree, StarIsReadyWhenTheLastWorkerJoins) {
    Tree star;
    star.join(join_of_member(0, 3, 0), worker(0));
    star.join(join_of_member(0, 3, 2), worker(2));
    EXPECT_EQ(star.count(Kind::admitted), 0U) << "its members send nothing yet";
    EXPECT_EQ(star.count(Kind::opened), 0U);
    const auto waiting = star.sent_to<wire::Joined>(worker(2));
    ASSERT_EQ(waiting.size(), 1U);
    EXPECT_FALSE(waiting[0].ready);
    EXPECT_EQ(waiting[0].missing_units, 0x1U);
    EXPECT_EQ(waiting[0].missing_members, 0x2U);

    star.join(join_of_member(0, 3, 1), worker(1));
    EXPECT_EQ(star.count(Kind::admitted), 1U);
    EXPECT_EQ(star.count(Kind::opened), 1U);
    for (unsigned rank = 0; rank < 3; ++rank) EXPECT_TRUE(star.told_ready(worker(rank))) << rank;
    const Branch* branch = star.tree.find(key);
    ASSERT_NE(branch, nullptr);
    EXPECT_TRUE(branch->hosts);
    ASSERT_TRUE(branch->membership().has_value());
    EXPECT_EQ(branch->membership()->workers(), 3U);
    EXPECT_EQ(branch->child_of_rank[2], 2);
}

TEST(JoinTree, WorkersReceiveReadyOnlyAfterTheServerIsOpen) {
    Tree star;
    star.opens = false;
    star.join(join_of_member(0, 2, 0), worker(0));
    star.join(join_of_member(0, 2, 1), worker(1));
    EXPECT_FALSE(star.told_ready(worker(0)));
    EXPECT_FALSE(star.told_ready(worker(1)));
    star.tree.opened(key);
    star.drain();
    EXPECT_TRUE(star.told_ready(worker(0)));
    EXPECT_TRUE(star.told_ready(worker(1)));
}

TEST(JoinTree, AllWorkersAreRefusedIfTheServerHasNoMemoryAndCanJoinLater) {
    Tree star;
    star.opens = false;
    star.lacks_memory = true;
    star.join(join_of_member(0, 2, 0), worker(0));
    star.forget();
    star.join(join_of_member(0, 2, 1), worker(1));
    star.expect_refused(worker(0), Refusal::full, "no memory");
    star.expect_refused(worker(1), Refusal::full, "no memory");
    EXPECT_EQ(star.count(Kind::closed), 1U);
    EXPECT_EQ(star.tree.channels(), 0U);

    star.forget();
    star.lacks_memory = false;
    star.opens = true;
    for (unsigned rank = 0; rank < 2; ++rank) star.join(join_of_member(0, 2, rank), worker(rank));
    EXPECT_TRUE(star.told_ready(worker(0))) << "the refused channel left nothing behind";
}

TEST(JoinTree, RepeatedJoinIsAnsweredAndChangesNothing) {
    Tree star;
    for (int time = 0; time < 3; ++time) {
        for (unsigned rank = 0; rank < 2; ++rank) star.join(join_of_member(0, 2, rank), worker(rank));
    }
    EXPECT_EQ(star.count(Kind::admitted), 1U);
    EXPECT_EQ(star.count(Kind::opened), 1U);
    EXPECT_EQ(star.tree.counters().refused, 0U);
    EXPECT_GE(star.sent_to<wire::Joined>(worker(1)).size(), 3U);
}

TEST(JoinTree, RackSwitchJoinsItsParentWhenAllItsWorkersJoined) {
    Tree rack(below(host(1)));
    rack.join(join_of_member(1, 2, 0, 2, 0x7), worker(2));
    EXPECT_TRUE(rack.sent_to<wire::Join>(host(1)).empty());
    rack.join(join_of_member(1, 2, 1, 2, 0x7), worker(3));
    const auto up = rack.sent_to<wire::Join>(host(1));
    ASSERT_EQ(up.size(), 1U);
    EXPECT_EQ(up[0].level, 1);
    EXPECT_FALSE(up[0].begun);
    EXPECT_EQ(up[0].terms, terms_of(0x7));
    EXPECT_EQ(up[0].units, join_of_unit(1, 2, 2, 0x7).units);
    EXPECT_FALSE(rack.told_ready(worker(2)));

    rack.joined(false, host(1), token, 0x5);
    rack.join(join_of_member(1, 2, 0, 2, 0x7), worker(2));
    const auto waiting = rack.sent_to<wire::Joined>(worker(2)).back();
    EXPECT_EQ(waiting.missing_units, 0x5U) << "the units that the root reported";
    EXPECT_EQ(waiting.missing_members, 0U);

    const wire::Address thread = host(1).with_port(5001);
    rack.joined(true, thread);
    EXPECT_TRUE(rack.told_ready(worker(2)));
    EXPECT_TRUE(rack.told_ready(worker(3)));
    EXPECT_EQ(rack.tree.find(key)->up_data, thread) << "packets go to the address that sent JOINED";
    EXPECT_EQ(rack.count(Kind::opened), 0U);
}

TEST(JoinTree, RackSwitchJoinsTheRootThatTheJobNamesInPlaceOfItsParent) {
    const auto named = [](wire::Join join) {
        join.terms.root = endpoint_of(host(60));
        return join;
    };
    for (const bool has_parent : {false, true}) {
        Tree rack(has_parent ? below(host(1)) : JoinTreeConfig{});
        rack.join(named(join_of_member(1, 2, 0, 2, 0x7)), worker(2));
        rack.join(named(join_of_member(1, 2, 1, 2, 0x7)), worker(3));
        EXPECT_TRUE(rack.sent_to<wire::Join>(host(1)).empty());
        const auto up = rack.sent_to<wire::Join>(host(60));
        ASSERT_EQ(up.size(), 1U);
        EXPECT_EQ(up[0].level, 1);
        EXPECT_EQ(up[0].terms.root, endpoint_of(host(60)));

        Tree root;
        root.join(up[0], host(2));
        root.join(named(join_of_unit(0, 0, 1, 0x7, true)), worker(0));
        root.join(named(join_of_unit(2, 1, 1, 0x7, true)), worker(1));
        EXPECT_EQ(root.count(Kind::opened), 1U) << "the root hosts the server";
        EXPECT_TRUE(root.told_ready(host(2)));
    }
}

TEST(JoinTree, RootIsReadyWithRacksAndDirectWorkers) {
    Tree root;
    root.join(join_of_unit(0, 0, 2, 0x7), host(2));
    root.join(join_of_unit(2, 4, 1, 0x7, true), worker(4));
    const auto waiting = root.sent_to<wire::Joined>(worker(4));
    ASSERT_EQ(waiting.size(), 1U);
    EXPECT_EQ(waiting[0].missing_units, 0x2U);
    EXPECT_EQ(waiting[0].missing_members, 0U);
    root.join(join_of_unit(1, 2, 2, 0x7), host(3));
    EXPECT_EQ(root.count(Kind::opened), 1U);
    EXPECT_TRUE(root.told_ready(host(2)));
    EXPECT_TRUE(root.told_ready(host(3)));
    EXPECT_TRUE(root.told_ready(worker(4)));
    const auto members = root.tree.find(key)->membership();
    ASSERT_TRUE(members.has_value());
    EXPECT_EQ(members->workers(), 5U);
    EXPECT_TRUE(members->unit(2).direct);
    EXPECT_EQ(members->place(3).unit, 1);
}

TEST(JoinTree, JobOfOneUnitIsReadyWithoutTheParent) {
    Tree rack(below(host(1)));
    rack.join(join_of_member(0, 2, 0), worker(0));
    rack.join(join_of_member(0, 2, 1), worker(1));
    EXPECT_TRUE(rack.sent_to<wire::Join>(host(1)).empty());
    EXPECT_TRUE(rack.tree.find(key)->hosts);
    EXPECT_TRUE(rack.told_ready(worker(0)));
}

TEST(JoinTree, LastSwitchJoinsAServerOnAnotherHostAndStillHostsTheChannel) {
    const auto elsewhere = [](wire::Join join) {
        join.terms.server = endpoint_of(host(50));
        return join;
    };
    for (const bool two_levels : {false, true}) {
        Tree last;
        if (two_levels) {
            last.join(elsewhere(join_of_unit(0, 0, 2, 0x3)), host(2));
            last.join(elsewhere(join_of_unit(1, 2, 1, 0x3, true)), worker(2));
        } else {
            last.join(elsewhere(join_of_member(0, 2, 0)), worker(0));
            last.join(elsewhere(join_of_member(0, 2, 1)), worker(1));
        }
        EXPECT_EQ(last.count(Kind::opened), 0U);
        const auto up = last.sent_to<wire::Join>(host(50));
        ASSERT_EQ(up.size(), 1U);
        EXPECT_EQ(up[0].level, 2);
        EXPECT_EQ(up[0].units.size(), two_levels ? 2U : 1U);

        Tree server;
        server.join(up[0], host(1));
        EXPECT_EQ(server.count(Kind::opened), 1U);
        EXPECT_TRUE(server.told_ready(host(1)));
        const auto members = server.tree.find(key)->membership();
        ASSERT_TRUE(members.has_value());
        EXPECT_EQ(members->workers(), two_levels ? 3U : 2U);

        last.joined(true, host(50));
        EXPECT_TRUE(last.tree.find(key)->ready());
    }
}

TEST(JoinTree, RestartedRackSwitchResumesTheJob) {
    Tree root;
    root.join(join_of_unit(0, 0, 2, 0x3), host(2));
    root.join(join_of_unit(1, 2, 1, 0x3, true), worker(2));
    ASSERT_TRUE(root.told_ready(host(2)));

    JoinTreeConfig restarted = below(host(1));
    restarted.secret = {1, 1};
    Tree rack(restarted);
    for (unsigned rank = 0; rank < 2; ++rank) rack.join(begun(join_of_member(0, 2, rank, 0, 0x3)), worker(rank));
    EXPECT_EQ(rack.tree.counters().refused, 0U) << "this switch had no server, so a restart loses no result";
    const auto up = rack.sent_to<wire::Join>(host(1));
    ASSERT_EQ(up.size(), 1U);
    EXPECT_TRUE(up[0].begun);
    root.forget();
    root.join(up[0], host(2));
    EXPECT_TRUE(root.told_ready(host(2)));
    EXPECT_TRUE(root.events.empty()) << "the root keeps its server";
}

// --- time

TEST(JoinTree, BranchJoinsItsParentEvery50MsUntilReadyThenTwelveTimesInAHoldTime) {
    const JoinTreeConfig config = below(host(1));
    Tree rack(config);
    rack.join(join_of_member(0, 1, 0, 0, 0x3), worker(0));
    rack.forget();
    rack.pass(10 * config.impatient);
    const std::size_t impatient = rack.sent_to<wire::Join>(host(1)).size();
    EXPECT_GE(impatient, 8U);
    EXPECT_LE(impatient, 12U);
    rack.joined(true, host(1));
    rack.pass(refresh_of(config.hold));
    rack.forget();
    rack.pass(4 * refresh_of(config.hold));
    const std::size_t patient = rack.sent_to<wire::Join>(host(1)).size();
    EXPECT_GE(patient, 3U);
    EXPECT_LE(patient, 5U);
}

TEST(JoinTree, SilentMemberExpiresAndTheOthersAreNotified) {
    Tree star;
    star.join(join_of_member(0, 2, 0), worker(0));
    star.join(join_of_member(0, 2, 1), worker(1));
    star.forget();
    for (int second = 0; second < 12; ++second) {
        star.pass(std::chrono::seconds(1));
        star.join(begun(join_of_member(0, 2, 0)), worker(0));
    }
    EXPECT_EQ(star.tree.counters().expired, 1U);
    const auto joined = star.sent_to<wire::Joined>(worker(0)).back();
    EXPECT_FALSE(joined.ready);
    EXPECT_EQ(joined.missing_members, 0x2U);
    EXPECT_EQ(star.count(Kind::closed), 0U);
    star.pass(std::chrono::seconds(12));
    EXPECT_EQ(star.count(Kind::closed), 1U);
    EXPECT_EQ(star.tree.channels(), 0U);
    EXPECT_EQ(star.tree.poll_timeout(), never) << "an empty tree has no timer";
}

TEST(JoinTree, PositionOfASilentMemberMayBeTaken) {
    Tree star;
    star.join(join_of_member(0, 2, 0), worker(0));
    star.now += star.tree.config().hold;  // no sweep has run yet
    star.join(join_of_member(0, 2, 0), worker(9));
    EXPECT_EQ(star.tree.counters().refused, 0U);
    EXPECT_EQ(star.tree.find(key)->children[0].address, worker(9));
}

TEST(JoinTree, SilentParentMakesTheBranchUnready) {
    Tree rack(below(host(1)));
    rack.join(join_of_member(0, 1, 0, 0, 0x3), worker(0));
    rack.joined(true, host(1));
    ASSERT_TRUE(rack.told_ready(worker(0)));
    for (int second = 0; second < 12; ++second) {
        rack.pass(std::chrono::seconds(1));
        rack.join(begun(join_of_member(0, 1, 0, 0, 0x3)), worker(0));
    }
    EXPECT_FALSE(rack.told_ready(worker(0)));
    EXPECT_EQ(rack.sent_to<wire::Joined>(worker(0)).back().missing_units, 0x3U);
    rack.joined(true, host(1));
    EXPECT_TRUE(rack.told_ready(worker(0))) << "the parent answers again";
}

// --- leaving

TEST(JoinTree, LeaveOfTheLastMemberClosesTheChannel) {
    Tree star;
    star.join(join_of_member(0, 2, 0), worker(0));
    star.join(join_of_member(0, 2, 1), worker(1));
    star.forget();
    star.leave(0, 1, worker(1));
    EXPECT_FALSE(star.told_ready(worker(0)));
    EXPECT_EQ(star.sent_to<wire::Joined>(worker(0)).back().missing_members, 0x2U);
    EXPECT_EQ(star.count(Kind::closed), 0U);
    star.leave(0, 0, worker(0));
    ASSERT_EQ(star.count(Kind::closed), 1U);
    EXPECT_TRUE(star.events.back().last_of_job);
    EXPECT_EQ(star.tree.counters().left, 2U);
}

TEST(JoinTree, RackWithoutMembersLeavesItsParent) {
    Tree rack(below(host(1)));
    rack.join(join_of_member(1, 1, 0, 0, 0x3), worker(0));
    rack.joined(true, host(1));
    rack.leave(1, 0, worker(0));
    const auto up = rack.sent_to<wire::Leave>(host(1));
    ASSERT_EQ(up.size(), 1U);
    EXPECT_EQ(up[0].unit, 1);
    EXPECT_EQ(up[0].token, token);

    Tree root;
    root.join(join_of_unit(0, 0, 1, 0x3), host(2));
    root.join(join_of_unit(1, 1, 1, 0x3), host(3));
    wire::Leave leave = up[0];
    leave.nonce = 0, leave.epoch = 9;
    root.tree.handle_leave(leave, host(3), root.now);
    root.drain();
    EXPECT_EQ(root.tree.counters().left, 1U);
    EXPECT_EQ(root.sent_to<wire::Joined>(host(2)).back().missing_units, 0x2U);
}

// A member takes a lower number for that of another process.
TEST(JoinTree, NumbersOfJoinedGoOnAfterAChannelEnded) {
    Tree star;
    star.join(join_of_member(0, 2, 0), worker(0));
    const std::uint32_t first = star.sent_to<wire::Joined>(worker(0)).back().number;
    star.leave(0, 0, worker(0));
    ASSERT_EQ(star.tree.channels(), 0U);
    star.join(join_of_member(0, 2, 0), worker(0));
    EXPECT_GT(star.sent_to<wire::Joined>(worker(0)).back().number, first);
}

TEST(JoinTree, RefusalFromAboveIsSentThreeTimes) {
    Tree rack(below(host(1)));
    rack.join(join_of_member(0, 1, 0, 0, 0x3), worker(0));
    rack.refused(Refusal::restarted, host(1));
    EXPECT_EQ(rack.sent_to<wire::Refused>(worker(0)).size(), 1U);
    rack.pass(std::chrono::milliseconds(300));
    EXPECT_EQ(rack.sent_to<wire::Refused>(worker(0)).size(), 3U);
}

TEST(JoinTree, ChannelsOfAJobOpenAndCloseIndependently) {
    Tree star;
    const auto other = [](wire::Join join) {
        join.terms.channel = 4;
        return join;
    };
    for (unsigned rank = 0; rank < 2; ++rank) {
        star.join(join_of_member(0, 2, rank), worker(rank));
        star.join(other(join_of_member(0, 2, rank)), worker(rank));
    }
    EXPECT_EQ(star.count(Kind::admitted), 2U);
    EXPECT_EQ(star.count(Kind::opened), 2U);
    star.leave(0, 0, worker(0));
    star.leave(0, 1, worker(1));
    ASSERT_EQ(star.count(Kind::closed), 1U);
    EXPECT_FALSE(star.events.back().last_of_job);
    EXPECT_EQ(star.tree.find(key), nullptr);
    ASSERT_NE(star.tree.find({job, token, 4}), nullptr);
    EXPECT_TRUE(star.tree.find({job, token, 4})->ready());
}

}  // namespace
}  // namespace atp::control
