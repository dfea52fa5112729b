// SPDX-License-Identifier: Apache-2.0
// What a member learns from a REFUSED, from a report about its packets, and from lost long packets.
#include "control/join_client_fixture.h"

namespace atp::control {
namespace {

// ------------------------------------------------------------------------------------------------------ REFUSED (H73)

TEST(JoinClient, RefusedFromTheSwitchEndsTheMemberWithReasonAndText) {
    for (const wire::Address& from : {switch_address, shard_address}) {
        Member member;
        member.pass(milliseconds(0));
        EXPECT_TRUE(member.receive(refused_message(wire::Refusal::full), from));
        ASSERT_TRUE(member.ended());
        EXPECT_EQ(member.cause().kind, Cause::refused);
        EXPECT_EQ(member.cause().refusal, wire::Refusal::full);
        EXPECT_EQ(member.cause().text, "no room");
        EXPECT_EQ(member.cause().from, from);
        EXPECT_FALSE(member.client.has_transmit());
    }
}

TEST(JoinClient, RefusedOfARestartedSwitchEndsAReadyMember) {
    Member member;
    member.become_ready();
    EXPECT_TRUE(member.receive(refused_message(wire::Refusal::restarted)));
    ASSERT_TRUE(member.ended());
    EXPECT_EQ(member.cause().refusal, wire::Refusal::restarted);
}

TEST(JoinClient, H69_RefusalOfARunningJobForLackOfRoomIsFinalOnlyIfItLasts) {
    for (const auto reason : {wire::Refusal::full, wire::Refusal::place}) {
        Member member;
        member.become_ready();
        member.client.set_busy(true);
        member.pass(milliseconds(2000), [&] { member.receive(refused_message(reason)); });
        EXPECT_FALSE(member.ended());
        member.joined(true);
        member.pass(seconds(2), [&] { member.joined(true); });
        EXPECT_FALSE(member.ended()) << "there is room again";
        member.pass(timing.hold + milliseconds(300), [&] { member.receive(refused_message(reason)); });
        ASSERT_TRUE(member.ended());
        EXPECT_EQ(member.cause().kind, Cause::refused);
        EXPECT_EQ(member.cause().refusal, reason);
        EXPECT_GE(member.cause().elapsed, timing.hold);
    }
}

// All versions have the nonce at the same place.
std::vector<std::byte> refusal_of_version(std::uint8_t version, std::uint64_t of_nonce = nonce) {
    std::vector<std::byte> bytes{std::byte{version}, std::byte{static_cast<std::uint8_t>(wire::ControlType::refused)},
                                 std::byte{0}, std::byte{0}};
    bytes.resize(bytes.size() + sizeof of_nonce);
    wire::store_u64(bytes.data() + 4, of_nonce);
    return bytes;
}
constexpr std::uint8_t other_version = (wire::control_version & 0xF0U) | ((wire::control_version + 1U) & 0xFU);

TEST(JoinClient, H87_RefusalForTheVersionEndsAMemberThatWasNeverReady) {
    Member member;
    member.pass(milliseconds(0));
    EXPECT_TRUE(member.client.handle_message(refusal_of_version(other_version), switch_address, false, member.now));
    member.drain();
    ASSERT_TRUE(member.ended());
    EXPECT_EQ(member.cause().kind, Cause::foreign_version);
    EXPECT_EQ(member.cause().version, other_version);

    Member answered;
    answered.pass(milliseconds(0));
    EXPECT_TRUE(
        answered.receive(wire::Refused{.nonce = nonce, .reason = wire::Refusal::version, .text = "it has version 9"}));
    ASSERT_TRUE(answered.ended());
    EXPECT_EQ(answered.cause().text, "it has version 9");
}

TEST(JoinClient, H73_RefusedOfAnotherVersionDoesNotEndAReadyMember) {
    Member member;
    member.become_ready();
    EXPECT_FALSE(member.client.handle_message(refusal_of_version(other_version), switch_address, false, member.now));
    EXPECT_FALSE(member.receive(wire::Refused{.nonce = nonce, .reason = wire::Refusal::version, .text = ""}));
    EXPECT_TRUE(member.events.empty());
    EXPECT_EQ(member.client.counters().stray_refusals, 2U);
    member.joined(false, 0x1, 0x2);  // the tree is no longer ready, but the member was ready before
    EXPECT_FALSE(member.client.handle_message(refusal_of_version(other_version), switch_address, false, member.now));
    EXPECT_TRUE(member.events.empty());
}

TEST(JoinClient, H73_RefusedFromAnotherAddressOrForAnotherChannelIsDroppedAndCounted) {
    Member member;
    member.pass(milliseconds(0));
    EXPECT_FALSE(member.receive(refused_message(wire::Refusal::full), stranger));
    EXPECT_FALSE(member.client.handle_message(refusal_of_version(other_version), stranger, false, member.now));
    EXPECT_FALSE(member.client.handle_message(refusal_of_version(other_version), shard_address, false, member.now));
    EXPECT_FALSE(
        member.client.handle_message(refusal_of_version(wire::control_version), switch_address, false, member.now))
        << "a truncated REFUSED of this version";
    EXPECT_EQ(member.client.counters().stray_refusals, 4U);
    for (const auto change :
         {+[](wire::Refused& other) { ++other.job; }, +[](wire::Refused& other) { ++other.token; },
          +[](wire::Refused& other) { ++other.channel; }, +[](wire::Refused& other) { ++other.nonce; }}) {
        wire::Refused other = refused_message(wire::Refusal::full);
        change(other);
        EXPECT_FALSE(member.receive(other));
    }
    EXPECT_EQ(member.client.counters().stray_refusals, 8U);
    EXPECT_TRUE(member.events.empty());
}

TEST(JoinClient, RefusedFromTheSenderOfTheFirstAnswerEndsTheMember) {
    Member member;
    member.pass(milliseconds(0));
    member.joined(false, 0x1, 0x2, stranger);  // a switch that answers from another interface
    EXPECT_TRUE(member.receive(refused_message(wire::Refusal::full), stranger));
    EXPECT_TRUE(member.ended());
}

TEST(JoinClient, H97_AnswersFromAnotherHostThanTheFirstAreDropped) {
    Member member;
    member.pass(milliseconds(0));
    member.joined(false, 0x1, 0x2);
    EXPECT_FALSE(member.joined(true, 0, 0, stranger));
    EXPECT_FALSE(member.client.was_ready());
    EXPECT_EQ(member.client.data_address(), switch_address);
}

// ------------------------------------------------------------------------------------- Evidence of a switch that ended

TEST(JoinClient, SwitchWithoutAProcessEndsABusyMemberWithinASecond) {
    for (const auto& quoted : {own_gradient(), testing::encoded(own_join)}) {
        Member member;
        member.become_ready();
        member.client.set_busy(true);
        member.pass(milliseconds(300));
        member.forget();
        const Time begin = member.now;
        member.error(port_error(quoted));
        member.pass(milliseconds(1000), [&] { member.error(port_error(testing::encoded(own_join))); });
        ASSERT_TRUE(member.ended());
        EXPECT_EQ(member.cause().kind, Cause::switch_ended);
        EXPECT_GE(member.cause().elapsed, timing.error_persists);
        EXPECT_LE(member.cause().elapsed, timing.error_persists + milliseconds(100));
        EXPECT_EQ(member.joined_at.front(), begin) << "the member sends a JOIN at once";
        EXPECT_GE(member.joins.size(), 8U) << "the member sends a JOIN every 50 ms";
        EXPECT_GE(member.client.counters().send_errors, 8U);
    }
}

TEST(JoinClient, SwitchWithoutAProcessEndsAMemberThatJoins) {
    Member member;
    member.pass(seconds(1), [&] { member.error(port_error(testing::encoded(own_join))); });
    ASSERT_TRUE(member.ended());
    EXPECT_EQ(member.cause().kind, Cause::switch_ended);
}

// A host limits its port-unreachable reports to six in a row, then one per second. A member may thus receive only one.
TEST(JoinClient, OneReportAndNoAnswerForAbout600MsEndABusyMember) {
    Member member;
    member.become_ready();
    member.client.set_busy(true);
    member.error(port_error(own_gradient()));
    member.pass(milliseconds(550));
    EXPECT_FALSE(member.ended());
    member.pass(milliseconds(100));
    ASSERT_TRUE(member.ended());
    EXPECT_EQ(member.cause().kind, Cause::switch_ended);
}

TEST(JoinClient, OneReportDoesNotEndAMemberThatReceivesAnswers) {
    for (const bool by_data : {false, true}) {
        Member member;
        member.become_ready();
        member.client.set_busy(true);
        for (int report = 0; report < 5; ++report) {
            member.error(port_error(own_gradient()));
            member.pass(seconds(3), [&] { by_data ? member.data() : static_cast<void>(member.joined(true)); });
        }
        EXPECT_TRUE(member.events.empty());
        EXPECT_LT(member.joins.size(), 75U) << "after an answer, JOINs are not sent every 50 ms any more";
    }
}

TEST(JoinClient, SwitchThatReturnsWithin300MsEndsNoMember) {
    Member member;
    member.become_ready();
    member.client.set_busy(true);
    member.error(port_error(own_gradient()));
    member.pass(milliseconds(300), [&] { member.error(port_error(testing::encoded(own_join))); });
    member.joined(true);
    member.pass(seconds(5), [&] { member.joined(true); });
    EXPECT_TRUE(member.events.empty());
}

TEST(JoinClient, ReportThatQuotesNoPacketOfThisChannelIsDroppedAndCounted) {
    Member member;
    member.become_ready();
    member.client.set_busy(true);
    std::vector<std::vector<std::byte>> others;
    for (const std::size_t field : {ATP_OFFSET_JOB, ATP_OFFSET_TOKEN, ATP_OFFSET_CHANNEL}) {
        others.push_back(own_gradient());
        others.back()[field] ^= std::byte{1};
    }
    others.push_back(own_gradient());
    others.back().resize(ATP_OFFSET_CHANNEL + 1);  // quotes the token, but not the channel
    others.push_back(testing::encoded(own_join));
    others.back().resize(8);
    others.emplace_back();
    std::uint64_t expected = 0;
    for (const auto& quoted : others) {
        for (int i = 0; i < 3; ++i) {
            member.error(port_error(quoted));
            member.pass(milliseconds(300), [&] { member.joined(true); });
            EXPECT_EQ(member.client.counters().stray_errors, ++expected);
        }
    }
    member.error(port_error(own_gradient(), stranger));
    EXPECT_EQ(member.client.counters().stray_errors, ++expected);
    EXPECT_EQ(member.client.counters().send_errors, 0U);
    EXPECT_TRUE(member.events.empty());
}

TEST(JoinClient, IdleMemberOfAnEndedSwitchEndsOnlyWhenItBecomesBusy) {
    Member member;
    member.become_ready();
    member.pass(seconds(5), [&] { member.error(port_error(testing::encoded(own_join))); });
    EXPECT_TRUE(member.events.empty());
    member.client.set_busy(true);
    member.pass(milliseconds(60));
    ASSERT_TRUE(member.ended());
    EXPECT_EQ(member.cause().kind, Cause::switch_ended);
}

TEST(JoinClient, H80_PauseOfTheMembersProcessAfterAReportDoesNotEndTheMember) {
    Member member;
    member.become_ready();
    member.client.set_busy(true);
    member.error(port_error(own_gradient()));
    member.pass(milliseconds(100));
    member.now += seconds(5);
    member.client.handle_timeout(member.now);
    member.drain();
    EXPECT_FALSE(member.ended());
}

// ------------------------------------------------------------------------------------------------------------ Path MTU

TEST(JoinClient, H79_RepeatedReportsOfTooLongPacketsEndABusyMemberWithTheMtu) {
    Member member;
    member.become_ready();
    member.client.set_busy(true);
    for (int i = 0; i < 5; ++i) {
        EXPECT_FALSE(member.ended());
        member.error(too_long_error(i == 1 ? 1472 : 1000, i == 0 ? 0 : 1400));
        member.pass(milliseconds(100), [&] { member.joined(true); });
    }
    ASSERT_TRUE(member.ended());
    EXPECT_EQ(member.cause().kind, Cause::path_too_narrow);
    EXPECT_EQ(member.cause().packet_bytes, 1472U);
    EXPECT_EQ(member.cause().mtu, 1400U);
    EXPECT_GE(member.cause().elapsed, timing.error_persists);
}

JoinClientConfig config_with_packets() {
    JoinClientConfig config = config_of_member();
    config.packet_bytes = 1472;
    return config;
}

TEST(JoinClient, ThreeOfFourJoinsOfABusyMemberAreAsLongAsItsPackets) {
    Member member(config_with_packets());
    member.become_ready();
    member.pass(seconds(1), [&] { member.joined(true); });
    EXPECT_THAT(member.lengths, ::testing::Each(0U)) << "nothing is under way";
    member.forget();
    member.client.set_busy(true);
    member.pass(seconds(2), [&] { member.joined(true); });
    EXPECT_EQ(std::ranges::count(member.lengths, 1472U), 6);
    EXPECT_EQ(std::ranges::count(member.lengths, 0U), 2);
}

// Long packets are lost without a report: the switch answers short JOINs only.
TEST(JoinClient, H79_LostLongPacketsEndABusyMemberAfterTheHoldTime) {
    for (const bool random : {false, true}) {
        Member member(config_with_packets());
        member.become_ready();
        member.client.set_busy(true);
        unsigned count = 0;
        const auto answer = [&] {
            const bool lost = random ? ++count % 2 == 0 : member.lengths.back() != 0;
            if (!lost) member.joined(true);
        };
        member.pass(timing.hold - milliseconds(100), answer);
        EXPECT_FALSE(member.ended());
        member.pass(milliseconds(1200), answer);
        EXPECT_EQ(member.ended(), !random);
        if (random) continue;
        EXPECT_EQ(member.cause().kind, Cause::path_too_narrow);
        EXPECT_EQ(member.cause().packet_bytes, 1472U);
        EXPECT_GE(member.cause().elapsed, timing.hold);
        member.client.leave();
        member.drain();
        ASSERT_FALSE(member.leaves.empty());
        EXPECT_EQ(member.leaves.back().edges.front().kind, wire::EdgeKind::path_mtu);
    }
}

// On a full link the queue may drop each long JOIN, and pass short ones. Results as long prove that the path is wide.
TEST(JoinClient, LongResultsProveThePathWhileLongJoinsAreLost) {
    for (const bool long_results : {true, false}) {
        Member member(config_with_packets());
        member.become_ready();
        member.client.set_busy(true);
        member.pass(2 * timing.hold, [&] {
            if (member.ended()) return;
            if (member.lengths.back() == 0) member.joined(true);
            member.client.handle_result(long_results, member.now);
        });
        EXPECT_EQ(member.ended(), !long_results);
    }
}

TEST(JoinClient, MemberThatHearsNothingNamesTheSwitchAndNotItsPath) {
    for (const unsigned answered : {0U, 1U, 2U, 3U, 4U}) {
        Member member(config_with_packets());
        member.become_ready();
        member.client.set_busy(true);
        unsigned count = 0;
        member.pass(timing.hold + seconds(2), [&] {
            if (count++ < answered) member.joined(true);
        });
        ASSERT_TRUE(member.ended());
        EXPECT_EQ(member.cause().kind, Cause::switch_silent) << answered;
    }
}

TEST(JoinClient, ReportsOfTooLongPackets11SecondsApartEndNoMember) {
    Member member;
    member.become_ready();
    member.client.set_busy(true);
    for (int i = 0; i < 4; ++i) {
        member.error(too_long_error(1472, 1400));
        member.pass(seconds(11), [&] { member.joined(true); });
    }
    EXPECT_TRUE(member.events.empty());
}

TEST(JoinClient, ForgedReportOfANarrowPathIsDropped) {
    Member member;
    member.become_ready();
    member.client.set_busy(true);
    wire::SendError forged = too_long_error(0, 600);
    forged.by_network = true;
    for (int i = 0; i < 10; ++i) {
        member.error(forged);
        member.pass(milliseconds(200), [&] { member.joined(true); });
    }
    EXPECT_TRUE(member.events.empty());
    EXPECT_EQ(member.client.counters().stray_errors, 10U);
}

}  // namespace
}  // namespace atp::control
