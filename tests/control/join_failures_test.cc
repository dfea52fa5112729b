// SPDX-License-Identifier: Apache-2.0
// What a switch finds out about members that fail, and what it tells the others.
#include <algorithm>
#include <bit>
#include <string>

#include "join_failures_fixture.h"

namespace atp::control {
namespace {

// A switch with a server and three members, of which the last one failed. Members 0 and 1 repeat their JOINs.
struct Star {
    Star() {
        for (unsigned member = 0; member < 3; ++member) tree.join(join_of_member(0, 3, member), worker(member));
        tree.forget();
    }
    // Every `answers` JOINED to worker 2 has that report as its answer.
    void pass(Duration duration, bool reports = false) {
        const Time end = tree.now + duration;
        std::size_t asked = 0;
        while (tree.now < end) {
            tree.pass(milliseconds(50));
            if (tree.now - joined_at >= refresh_of(timing.hold)) {
                joined_at = tree.now;
                for (unsigned member = 0; member < 2; ++member) {
                    tree.join(begun(join_of_member(0, 3, member)), worker(member));
                }
            }
            const std::size_t now_asked = tree.sent_to<wire::Joined>(worker(2)).size();
            if (reports && now_asked != asked) tree.tree.handle_send_error(no_process(worker(2)), tree.now);
            asked = now_asked;
            tree.drain();
        }
    }

    Tree tree;
    Time joined_at{};
};

TEST(JoinFailures, SilentMemberIsNamedAfterTheHoldTime) {
    Star star;
    star.pass(timing.hold - milliseconds(100));
    EXPECT_FALSE(edge_told(star.tree, worker(0)));
    star.pass(milliseconds(200));
    const auto edge = edge_told(star.tree, worker(0));
    ASSERT_TRUE(edge);
    EXPECT_EQ(edge->kind, EdgeKind::member);
    EXPECT_EQ(edge->evidence, Evidence::silence);
    EXPECT_EQ(edge->member, 2U);
    EXPECT_GE(edge->silent_ms, 3000U);
    EXPECT_EQ(address_of(edge->at), worker(2));
    EXPECT_EQ(star.tree.tree.counters().expired, 1U);
}

TEST(JoinFailures, LateMemberIsAskedEvery50Ms) {
    Star star;
    star.pass(refresh_of(timing.hold) + timing.late - milliseconds(50));
    EXPECT_TRUE(star.tree.sent_to<wire::Joined>(worker(2)).empty());
    star.pass(milliseconds(1050));
    EXPECT_THAT(star.tree.sent_to<wire::Joined>(worker(2)).size(),
                ::testing::AllOf(::testing::Ge(18U), ::testing::Le(22U)));
}

TEST(JoinFailures, MemberWithoutAProcessIsNamedWithinASecond) {
    Star star;
    star.pass(milliseconds(900), true);
    const auto edge = edge_told(star.tree, worker(1));
    ASSERT_TRUE(edge);
    EXPECT_EQ(edge->kind, EdgeKind::member);
    EXPECT_EQ(edge->evidence, Evidence::closed);
    EXPECT_EQ(edge->member, 2U);
    EXPECT_EQ(star.tree.tree.counters().closed, 1U);
    EXPECT_EQ(star.tree.tree.counters().expired, 0U);
}

TEST(JoinFailures, ReportThatQuotesAnotherTokenOrComesFromElsewhereIsDroppedAndCounted) {
    Star star;
    for (int i = 0; i < 20; ++i) {
        star.tree.tree.handle_send_error(no_process(worker(1), token + 1), star.tree.now);
        star.tree.tree.handle_send_error(no_process(host(77)), star.tree.now);
        star.pass(milliseconds(50));
        star.tree.join(begun(join_of_member(0, 3, 2)), worker(2));
    }
    EXPECT_EQ(star.tree.tree.counters().stray_errors, 40U);
    EXPECT_EQ(star.tree.tree.counters().closed, 0U);
    EXPECT_TRUE(star.tree.tree.find(key)->ready());
}

TEST(JoinFailures, ReportFollowedByAJoinRemovesNoMember) {
    Star star;
    star.tree.tree.handle_send_error(no_process(worker(2)), star.tree.now);
    for (int i = 0; i < 20; ++i) {
        star.pass(milliseconds(100));
        star.tree.join(begun(join_of_member(0, 3, 2)), worker(2));
    }
    EXPECT_TRUE(star.tree.tree.find(key)->ready());
}

TEST(JoinFailures, H78_CauseOfALeaveReachesTheOthersAndALeaveWithoutOneIsLeft) {
    for (const bool has_cause : {true, false}) {
        Star star;
        wire::Leave leave{.job = job, .token = token, .channel = channel, .epoch = 9, .unit = 0, .member = 2};
        if (has_cause) {
            leave.edges = {{.kind = EdgeKind::path_mtu, .evidence = Evidence::too_long, .member = 2, .detail = 1000}};
        }
        star.tree.tree.handle_leave(leave, worker(2), star.tree.now);
        star.tree.drain();
        const auto edge = edge_told(star.tree, worker(0));
        ASSERT_TRUE(edge);
        EXPECT_EQ(edge->kind, has_cause ? EdgeKind::path_mtu : EdgeKind::member);
        EXPECT_EQ(edge->evidence, has_cause ? Evidence::too_long : Evidence::left);
        EXPECT_EQ(edge->detail, has_cause ? 1000U : 0U);
        EXPECT_EQ(edge->member, 2U);
    }
}

TEST(JoinFailures, H78_OthersAreToldOnlyTheFirstFailureUntilTheTreeIsReadyAgain) {
    Star star;
    star.tree.leave(0, 2, worker(2));
    star.tree.leave(0, 1, worker(1));
    EXPECT_EQ(edge_told(star.tree, worker(0))->member, 2U);
    for (unsigned member = 1; member < 3; ++member) {
        star.tree.join(begun(join_of_member(0, 3, member)), worker(member));
    }
    EXPECT_TRUE(star.tree.told_ready(worker(0)));
    EXPECT_FALSE(edge_told(star.tree, worker(0)));
}

TEST(JoinFailures, MemberThatReturnedIsNotNamedWhileAnotherIsMissing) {
    Star star;
    star.tree.leave(0, 2, worker(2));
    star.tree.leave(0, 1, worker(1));
    star.tree.join(begun(join_of_member(0, 3, 2)), worker(2));
    ASSERT_TRUE(edge_told(star.tree, worker(0)));
    EXPECT_EQ(edge_told(star.tree, worker(0))->member, 1U);
    EXPECT_EQ(edge_told(star.tree, worker(2))->member, 1U);
}

wire::Join stating(wire::Join join, std::string text) {
    join.begun = true;
    join.statements = {{.count = 1,
                        .unit = 0,
                        .member = static_cast<std::uint8_t>(std::countr_zero(join.units.front().members)),
                        .text = std::move(text)}};
    return join;
}

TEST(JoinFailures, StatementsReachAllMembersOnceAndARepeatedOneReachesItsMember) {
    Star star;
    star.tree.join(stating(join_of_member(0, 3, 0), "barrier"), worker(0));
    star.tree.join(stating(join_of_member(0, 3, 1), "broadcast"), worker(1));
    for (unsigned member = 0; member < 3; ++member) {
        ASSERT_EQ(star.tree.sent_to<wire::Joined>(worker(member)).size(), 2U);
        EXPECT_EQ(star.tree.sent_to<wire::Joined>(worker(member)).back().statements.size(), 2U);
    }
    star.tree.forget();
    for (int repeat = 0; repeat < 10; ++repeat) {
        star.tree.join(stating(join_of_member(0, 3, 0), "barrier"), worker(0));
    }
    EXPECT_EQ(star.tree.sent_to<wire::Joined>(worker(0)).size(), 10U);
    EXPECT_TRUE(star.tree.sent_to<wire::Joined>(worker(1)).empty());
}

TEST(JoinFailures, H80_PauseOfTheSwitchIsNoSilenceOfItsMembers) {
    Star star;
    star.pass(milliseconds(100));
    star.tree.now += std::chrono::seconds(20);
    star.tree.tree.handle_timeout(star.tree.now);
    star.tree.drain();
    EXPECT_EQ(star.tree.tree.counters().expired, 0U);
    star.pass(timing.hold + milliseconds(200));
    EXPECT_EQ(star.tree.tree.counters().expired, 1U) << "the pause only delays the finding";
}

TEST(JoinFailures, H80_SwitchThatDidNotRunIsNamedInsteadOfTheRankThatLeft) {
    for (const bool was_paused : {true, false}) {
        Star star;
        if (was_paused) {
            star.tree.now += milliseconds(3100);
        } else {
            star.pass(milliseconds(2500));
            star.tree.join(begun(join_of_member(0, 3, 2)), worker(2));
        }
        wire::Leave leave{.job = job, .token = token, .channel = channel, .epoch = 99, .unit = 0, .member = 2};
        leave.edges = {{.kind = EdgeKind::member,
                        .evidence = Evidence::one_direction,
                        .member = 2,
                        .silent_ms = 3000,
                        .at = endpoint_of(host(1))}};
        star.tree.tree.handle_leave(leave, worker(2), star.tree.now);
        star.tree.drain();
        const auto edge = edge_told(star.tree, worker(0));
        ASSERT_TRUE(edge);
        EXPECT_EQ(edge->evidence, was_paused ? Evidence::paused : Evidence::one_direction);
        EXPECT_EQ(edge->kind, was_paused ? EdgeKind::leaf : EdgeKind::member);
        EXPECT_EQ(address_of(edge->at), host(1));
    }
}

// One lost message must not turn the cause into silence of an innocent switch.
TEST(JoinFailures, LastWordToARemovedMemberIsSentThreeTimes) {
    Star star;
    star.pass(timing.hold + milliseconds(300));
    const auto told = star.tree.sent_to<wire::Joined>(worker(2));
    EXPECT_EQ(std::ranges::count_if(told, [](const wire::Joined& joined) { return !joined.ready; }), 3);
}

}  // namespace
}  // namespace atp::control
