// SPDX-License-Identifier: Apache-2.0
// A member whose tree is not ready any more, or that hears nothing.
#include "control/join_client_fixture.h"

namespace atp::control {
namespace {

// ------------------------------------------------------------------------------------------ Tree that becomes unready

TEST(JoinClient, LostTreeEndsABusyMemberAfter3SecondsAndNamesTheFirstMissingRanks) {
    Member member;
    member.become_ready();
    member.client.set_busy(true);
    member.joined(false, 0x1, 0x2);
    member.pass(seconds(2), [&] { member.joined(false, 0x1, 0x6); });  // member 2 leaves too, because member 1 left
    EXPECT_FALSE(member.ended());
    EXPECT_TRUE(member.joins.back().begun);
    EXPECT_GE(member.joins.size(), 40U);
    member.pass(seconds(2), [&] { member.joined(false, 0x5); });  // two units are missing now
    ASSERT_TRUE(member.ended());
    EXPECT_EQ(member.cause().kind, Cause::members_missing);
    EXPECT_EQ(member.cause().missing_units, 0x1U);
    EXPECT_EQ(member.cause().missing_members, 0x2U);
    EXPECT_GT(member.cause().elapsed, seconds(3));
    EXPECT_LT(member.cause().elapsed, milliseconds(3100));
}

TEST(JoinClient, LeaveWithACauseIsSentThreeTimesWithOneEpoch) {
    Member member;
    member.become_ready();
    member.client.set_busy(true);
    member.pass(timing.hold + milliseconds(100));  // the switch is silent
    ASSERT_TRUE(member.ended());
    member.client.leave();
    member.drain();
    member.pass(seconds(1));
    ASSERT_EQ(member.leaves.size(), 3U);
    for (const wire::Leave& leave : member.leaves) {
        EXPECT_EQ(leave.epoch, member.leaves[0].epoch);
        EXPECT_EQ(leave.edges.size(), 1U);
    }
    EXPECT_EQ(member.client.poll_timeout(), never);
}

TEST(JoinClient, H75_RestartedSwitchIsNamedIfARankDoesNotReturn) {
    for (const bool restarts : {true, false}) {
        Member member;
        member.become_ready();
        for (int i = 0; i < 5; ++i) member.joined(true);
        member.client.set_busy(true);
        member.pass(milliseconds(300));
        if (restarts) member.number = 0;
        member.joined(false, 0x1, 0x2);
        member.pass(seconds(4), [&] { member.joined(false, 0x1, 0x2); });
        ASSERT_TRUE(member.ended());
        EXPECT_EQ(member.cause().kind, restarts ? Cause::switch_restarted : Cause::members_missing);
        EXPECT_EQ(member.cause().missing_members, 0x2U);
    }
}

TEST(JoinClient, LostServerEndsABusyMember) {
    Member member;
    member.become_ready();
    member.client.set_busy(true);
    member.joined(false);
    member.pass(seconds(4), [&] { member.joined(false); });
    ASSERT_TRUE(member.ended());
    EXPECT_EQ(member.cause().kind, Cause::server_missing);
}

TEST(JoinClient, H75_LostTreeThatReturnsInTimeChangesNothing) {
    Member member;
    member.become_ready();
    member.client.set_busy(true);
    for (int loss = 0; loss < 5; ++loss) {
        member.joined(false, 0x1, 0x2);
        member.pass(seconds(2), [&] { member.joined(false, 0x1, 0x2); });
        member.joined(true);
        member.pass(seconds(2), [&] { member.joined(true); });
    }
    EXPECT_TRUE(member.events.empty());
}

TEST(JoinClient, IdleMemberOfALostTreeEndsOnlyWhenItBecomesBusy) {
    Member member;
    member.become_ready();
    member.joined(false, 0x1, 0x2);
    member.pass(seconds(60), [&] { member.joined(false, 0x1, 0x2); });
    EXPECT_TRUE(member.events.empty());
    member.client.set_busy(true);
    member.pass(milliseconds(50));
    EXPECT_TRUE(member.ended());
}

wire::Edge edge_of_member(std::uint8_t member, wire::Evidence evidence) {
    return {.kind = wire::EdgeKind::member, .evidence = evidence, .unit = 0, .member = member};
}

TEST(JoinClient, IdleMemberFollowsTheCauseThatItsSwitchReports) {
    Member member;
    member.become_ready();
    member.joined_with(edge_of_member(1, wire::Evidence::silence));
    member.joined_with(edge_of_member(2, wire::Evidence::left));  // member 1 returned, and then member 2 left
    member.client.set_busy(true);
    member.pass(seconds(1), [&] { member.joined_with(edge_of_member(2, wire::Evidence::left)); });
    ASSERT_TRUE(member.ended());
    EXPECT_EQ(member.cause().kind, Cause::edge_failed);
    EXPECT_EQ(member.cause().edge.member, 2U);
}

TEST(JoinClient, ResultsAfterALeaveDelayTheEndButAFailureDoesNotWait) {
    for (const auto evidence : {wire::Evidence::left, wire::Evidence::silence}) {
        Member member;
        member.become_ready();
        member.client.set_busy(true);
        member.joined_with(edge_of_member(1, evidence));
        for (int i = 0; i < 4 && !member.ended(); ++i) {
            member.pass(milliseconds(500), [&] { member.joined_with(edge_of_member(1, evidence)); });
            member.client.handle_result(false, member.now);
        }
        EXPECT_EQ(member.ended(), evidence == wire::Evidence::silence);
        member.pass(seconds(1), [&] { member.joined_with(edge_of_member(1, evidence)); });
        EXPECT_TRUE(member.ended());
    }
}

// ------------------------------------------------------------------------------------------------- Silence (H77, H80)

TEST(JoinClient, H77_BusyMemberEndsIfNoJoinIsAnsweredForTheHoldTime) {
    Member member;
    member.become_ready();
    member.client.set_busy(true);
    member.pass(timing.hold);  // the first JOIN without an answer is sent after 50 ms
    EXPECT_FALSE(member.ended());
    member.pass(milliseconds(100));
    ASSERT_TRUE(member.ended());
    EXPECT_EQ(member.cause().kind, Cause::switch_silent);
    EXPECT_GE(member.cause().elapsed, timing.hold);
    EXPECT_LT(member.cause().elapsed, timing.hold + milliseconds(100));
    EXPECT_EQ(member.client.poll_timeout(), never);
}

TEST(JoinClient, H77_IdleMemberOfASilentSwitchEndsOnlyWhenItBecomesBusy) {
    Member member;
    member.become_ready();
    member.pass(seconds(60));
    EXPECT_TRUE(member.events.empty());
    EXPECT_GE(member.joins.size(), 230U);
    member.client.set_busy(true);
    member.pass(milliseconds(1));
    ASSERT_TRUE(member.ended());
    EXPECT_EQ(member.cause().kind, Cause::switch_silent);
}

TEST(JoinClient, H77_BusyMemberOfALostTreeEndsIfTheSwitchBecomesSilent) {
    Member member;
    member.become_ready();
    member.client.set_busy(true);
    member.joined(false, 0x1, 0x2);
    member.pass(milliseconds(2900));
    EXPECT_FALSE(member.ended());
    member.pass(milliseconds(200));
    ASSERT_TRUE(member.ended());
    EXPECT_EQ(member.cause().kind, Cause::switch_silent);
}

TEST(JoinClient, AnswerToEveryNinthJoinOrDataWithTheTokenEvery2SecondsKeepsABusyMember) {
    Member by_joins;
    by_joins.become_ready();
    by_joins.client.set_busy(true);
    int number = 0;
    by_joins.pass(seconds(120), [&] {
        if (++number % 9 == 0) by_joins.joined(true);
    });
    EXPECT_TRUE(by_joins.events.empty());

    Member by_data;
    by_data.become_ready();
    by_data.client.set_busy(true);
    for (int i = 0; i < 30; ++i) {
        by_data.pass(seconds(2));
        by_data.data();
    }
    EXPECT_TRUE(by_data.events.empty());
}

TEST(JoinClient, DataWithoutProofOrFromAnotherAddressDoesNotCountAsAnAnswer) {
    Member member;
    member.become_ready();
    member.client.set_busy(true);
    for (int i = 0; i < 12; ++i) {
        member.pass(seconds(1));
        member.data(switch_address, false);
        member.data(stranger, true);
    }
    ASSERT_TRUE(member.ended());
    EXPECT_EQ(member.cause().kind, Cause::switch_silent);
}

TEST(JoinClient, H80_PauseOfTheMembersProcessIsNoSilenceOfTheSwitch) {
    Member member;
    member.become_ready();
    member.client.set_busy(true);
    member.pass(milliseconds(1500));  // one JOIN has no answer
    member.now += seconds(20);        // the process of the member is stopped for 20 s
    member.client.handle_timeout(member.now);
    member.drain();
    EXPECT_FALSE(member.ended());
    member.pass(seconds(1));
    EXPECT_FALSE(member.ended());
    member.pass(seconds(2));
    ASSERT_TRUE(member.ended()) << "the pause only delays the end";
    EXPECT_EQ(member.cause().kind, Cause::switch_silent);
}

TEST(JoinClient, H80_PauseOfTheMembersProcessDoesNotEndTheMemberOfALostTree) {
    Member member;
    member.become_ready();
    member.client.set_busy(true);
    member.joined(false, 0x1, 0x2);
    member.pass(milliseconds(200));
    member.now += seconds(20);
    member.client.handle_timeout(member.now);
    member.drain();
    EXPECT_FALSE(member.ended());
}

}  // namespace
}  // namespace atp::control
