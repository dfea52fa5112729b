// SPDX-License-Identifier: Apache-2.0
#include "control/join_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "support/control_messages.h"
#include "support/packets.h"

namespace atp::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = MemberEvent::Kind;
using Cause = MemberCause::Kind;

constexpr Time start_time{seconds(100)};
const wire::Join own_join = testing::join_of_worker();

wire::Address address(const char* text) { return *wire::Address::parse(text); }
const wire::Address switch_address = address("10.0.0.1:4790");
const wire::Address shard_address = address("10.0.0.1:50123");  // another port of the same switch
const wire::Address stranger = address("10.0.0.99:4790");

constexpr std::uint64_t nonce = 0x2122232425262728;  // as that of own_join
constexpr std::uint64_t group_number = 0x67726F7570;

JoinClientConfig config_of_member(bool has_group = false) {
    return {.terms = own_join.terms,
            .unit = own_join.units[0],
            .level = 0,
            .switch_address = switch_address,
            .has_group = has_group,
            .nonce = nonce};
}

wire::Joined joined_message(bool ready, std::uint32_t units = 0, std::uint32_t members = 0) {
    return {.nonce = nonce,
            .job = own_join.terms.job,
            .token = own_join.terms.token,
            .channel = own_join.terms.channel,
            .group_number = group_number,
            .ready = ready,
            .missing_units = units,
            .missing_members = members,
            .stream = 9};
}

wire::Refused refused_message(wire::Refusal reason, std::string text = "no room") {
    return {.nonce = nonce,
            .job = own_join.terms.job,
            .token = own_join.terms.token,
            .channel = own_join.terms.channel,
            .reason = reason,
            .text = std::move(text)};
}

// Everybody in the network may read this message.
wire::Joined joined_by_group() {
    wire::Joined message = joined_message(true);
    message.nonce = 0;
    message.token = group_number;
    return message;
}

std::vector<std::byte> own_gradient() {
    atp_header header{};
    header.version = ATP_VERSION;
    header.type = ATP_TYPE_GRADIENT;
    header.job = own_join.terms.job;
    header.token = own_join.terms.token;
    header.channel = own_join.terms.channel;
    return testing::make_packet(header, testing::Lanes(62, 1));
}

wire::SendError port_error(const std::vector<std::byte>& quoted, const wire::Address& to = switch_address) {
    wire::SendError error{.kind = wire::SendError::Kind::port_unreachable, .to = to, .by_network = true};
    error.quoted_bytes = std::min(quoted.size(), error.quoted.size());
    std::copy_n(quoted.begin(), error.quoted_bytes, error.quoted.begin());
    return error;
}

wire::SendError too_long_error(std::uint32_t bytes, std::uint32_t mtu) {
    return {.kind = wire::SendError::Kind::too_long, .to = switch_address, .bytes = bytes, .mtu = mtu};
}

// A member with a clock. Lists keep its JOINs and events.
class Member {
  public:
    explicit Member(const JoinClientConfig& config = config_of_member()) : client(config) {}

    template <class Message>
    bool receive(const Message& message, const wire::Address& from = switch_address, bool by_group = false) {
        const bool mine = client.handle_message(testing::encoded(message), from, by_group, now);
        drain();
        return mine;
    }
    // Answers the last JOIN.
    bool joined(bool ready, std::uint32_t units = 0, std::uint32_t members = 0,
                const wire::Address& from = switch_address) {
        return receive(answer(joined_message(ready, units, members)), from);
    }
    [[nodiscard]] wire::Joined answer(wire::Joined message) {
        message.epoch = epoch;
        message.number = ++number;
        return message;
    }
    // The tree is not ready, and the switch names this edge.
    bool joined_with(const wire::Edge& edge) {
        wire::Joined message = joined_message(false, 0x1, 0x2);
        message.edges = {edge};
        return receive(answer(message));
    }
    void data(const wire::Address& from = switch_address, bool proven = true) {
        client.handle_data(from, false, false, proven, now);
    }
    void error(const wire::SendError& error) {
        client.handle_send_error(error, now);
        drain();
    }
    // Joins a ready tree.
    void become_ready() {
        pass(milliseconds(0));
        joined(true);
        forget();
    }
    // Advances time and calls the member at each of its timeouts. `answer` is called after each JOIN.
    void pass(Duration duration, const std::function<void()>& answer = {}) {
        const Time end = now + duration;
        for (int call = 0; call < 10'000 && client.poll_timeout() <= end; ++call) {
            now = std::max(now, client.poll_timeout());
            client.handle_timeout(now);
            const std::size_t before = joins.size();
            drain();
            if (answer && joins.size() != before) answer();
        }
        now = end;
    }
    void drain() {
        while (const auto transmit = client.poll_transmit()) {
            to.push_back(transmit->to);
            if (const auto* join = std::get_if<wire::Join>(&transmit->message)) {
                joins.push_back(*join);
                joined_at.push_back(now);
                lengths.push_back(transmit->join_bytes);
                epoch = join->epoch;
            } else {
                leaves.push_back(std::get<wire::Leave>(transmit->message));
            }
        }
        while (auto event = client.poll_event()) events.push_back(*std::move(event));
    }
    void forget() { joins.clear(), joined_at.clear(), lengths.clear(), to.clear(), events.clear(); }
    [[nodiscard]] bool ended() const { return !events.empty() && events.back().kind == Kind::ended; }
    [[nodiscard]] const MemberCause& cause() const { return events.back().cause; }

    JoinClient client;
    Time now = start_time;
    std::vector<wire::Join> joins;
    std::vector<Time> joined_at;
    std::vector<std::uint32_t> lengths;  // of the JOINs, as far as they are more than the least
    std::vector<wire::Address> to;
    std::vector<wire::Leave> leaves;
    std::vector<MemberEvent> events;
    std::uint32_t epoch = 0;   // of the last JOIN
    std::uint32_t number = 0;  // of the last JOINED
};

// -------------------------------------------------------------------------------------------------------- Joining

TEST(JoinClient, FirstJoinIsSentAtOnceWithItsTermsAndPosition) {
    Member member;
    member.pass(milliseconds(0));
    ASSERT_EQ(member.joins.size(), 1U);
    EXPECT_EQ(member.joins[0].terms, own_join.terms);
    EXPECT_EQ(member.joins[0].units, own_join.units);
    EXPECT_FALSE(member.joins[0].begun);
    EXPECT_FALSE(member.joins[0].receives_group);
    EXPECT_EQ(member.to[0], switch_address);
    EXPECT_EQ(member.client.counters().joins, 1U);
}

TEST(JoinClient, RepeatsItsJoinEvery50MsUntilReadyThenTwelveTimesInTheHoldTime) {
    Member member;
    member.pass(milliseconds(499));
    EXPECT_EQ(member.joins.size(), 10U);
    member.joined(true);
    member.forget();
    member.pass(timing.hold, [&] { member.joined(true); });
    EXPECT_THAT(member.joins.size(), ::testing::AllOf(::testing::Ge(12U), ::testing::Le(13U)));
    EXPECT_TRUE(member.joins.back().begun);
}

TEST(JoinClient, FirstReadyIsAnEventAndSetsTheStream) {
    Member member;
    member.pass(milliseconds(0));
    EXPECT_TRUE(member.joined(true, 0, 0, shard_address));
    ASSERT_EQ(member.events.size(), 1U);
    EXPECT_EQ(member.events[0].kind, Kind::ready);
    EXPECT_EQ(member.client.stream(), 9U);
    EXPECT_EQ(member.client.data_address(), shard_address);
    EXPECT_EQ(member.client.answered_at(), member.now);
    member.joined(true);
    EXPECT_EQ(member.events.size(), 1U);
}

TEST(JoinClient, JoiningMemberReportsMissingMembersAsAnEvent) {
    Member member;
    member.pass(milliseconds(0));
    member.joined(false, 0x4, 0x3);
    ASSERT_EQ(member.events.size(), 1U);
    EXPECT_EQ(member.events[0].kind, Kind::waiting);
    EXPECT_EQ(member.cause().kind, Cause::members_missing);
    EXPECT_EQ(member.cause().missing_units, 0x4U);
    EXPECT_EQ(member.cause().missing_members, 0x3U);
    member.joined(false);
    EXPECT_EQ(member.cause().kind, Cause::server_missing);
    EXPECT_FALSE(member.client.was_ready());
}

TEST(JoinClient, JoinedOfAnotherChannelChangesNothing) {
    Member member;
    member.pass(milliseconds(0));
    for (const auto change :
         {+[](wire::Joined& other) { ++other.job; }, +[](wire::Joined& other) { ++other.token; },
          +[](wire::Joined& other) { ++other.channel; }, +[](wire::Joined& other) { ++other.nonce; }}) {
        wire::Joined other = joined_message(true);
        change(other);
        EXPECT_FALSE(member.receive(member.answer(other)));
        EXPECT_FALSE(member.receive(member.answer(other), switch_address, true));
    }
    EXPECT_FALSE(member.receive(wire::Hello{.nonce = 1}));
    EXPECT_FALSE(member.client.handle_message({}, switch_address, false, member.now));
    EXPECT_FALSE(member.client.was_ready());
    EXPECT_TRUE(member.events.empty());
}

TEST(JoinClient, RetryIsFollowedAtOnceByAJoinWithItsCookie) {
    Member member;
    member.pass(milliseconds(10));
    ASSERT_EQ(member.joins.size(), 1U);
    EXPECT_EQ(member.joins[0].cookie, 0U);
    const wire::Retry retry{.nonce = nonce,
                            .job = own_join.terms.job,
                            .token = own_join.terms.token,
                            .channel = own_join.terms.channel,
                            .cookie = 0xC001};
    wire::Retry forged = retry;
    ++forged.nonce;
    EXPECT_FALSE(member.receive(forged));
    EXPECT_TRUE(member.receive(retry));
    member.pass(milliseconds(0));
    ASSERT_EQ(member.joins.size(), 2U);
    EXPECT_EQ(member.joins[1].cookie, 0xC001U);
    EXPECT_EQ(member.joins[1].epoch, member.joins[0].epoch + 1);
    EXPECT_TRUE(member.receive(retry)) << "a copy of the RETRY";
    member.pass(milliseconds(10));
    EXPECT_EQ(member.joins.size(), 2U) << "the copy makes the member send nothing";
}

TEST(JoinClient, JoinedThatIsNotTheNewestIsDroppedAndCounted) {
    Member member;
    member.become_ready();
    const wire::Joined ready = member.answer(joined_message(true));
    member.pass(milliseconds(300));  // further JOINs
    member.joined(false, 0x1, 0x2);
    EXPECT_TRUE(member.receive(ready)) << "the network repeats it";
    EXPECT_EQ(member.client.counters().stale, 1U);
    member.client.set_busy(true);
    member.pass(seconds(4), [&] { member.joined(false, 0x1, 0x2); });
    EXPECT_TRUE(member.ended()) << "the old JOINED did not make the tree ready";
    wire::Joined of_no_join = joined_message(true);
    of_no_join.epoch = member.epoch + 1;
    EXPECT_FALSE(member.receive(of_no_join)) << "it answers a JOIN that was never sent";
}

TEST(JoinClient, GroupMessagesCountByTheNumberOfTheLastJoined) {
    Member member(config_of_member(true));
    member.pass(milliseconds(0));
    EXPECT_FALSE(member.receive(joined_by_group(), switch_address, true)) << "no switch has told the number yet";
    member.joined(true);
    EXPECT_EQ(member.client.group_number(), group_number);
    EXPECT_TRUE(member.receive(joined_by_group(), switch_address, true));
    wire::Joined with_token = joined_by_group();
    with_token.token = own_join.terms.token;
    EXPECT_FALSE(member.receive(with_token, switch_address, true));
    EXPECT_FALSE(member.receive(joined_by_group(), switch_address)) << "it came to this member alone";
}

TEST(JoinClient, LeaveIsSentOnceWithThePositionAndEndsTheMember) {
    Member member;
    member.become_ready();
    member.client.leave();
    EXPECT_TRUE(member.client.has_transmit());
    member.drain();
    ASSERT_EQ(member.leaves.size(), 1U);
    EXPECT_EQ(member.leaves[0].job, own_join.terms.job);
    EXPECT_EQ(member.leaves[0].token, own_join.terms.token);
    EXPECT_EQ(member.leaves[0].channel, own_join.terms.channel);
    EXPECT_EQ(member.leaves[0].unit, 2U);
    EXPECT_EQ(member.leaves[0].member, 2U);
    EXPECT_EQ(member.client.poll_timeout(), never);
    member.client.handle_timeout(member.now + seconds(60));
    member.error(port_error(own_gradient()));
    member.drain();
    EXPECT_TRUE(member.joins.empty());
    EXPECT_TRUE(member.events.empty());
    EXPECT_EQ(member.leaves.size(), 1U);
}

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

TEST(JoinClient, RestartedSwitchIsNamedIfARankDoesNotReturn) {
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

TEST(JoinClient, LostTreeThatReturnsInTimeChangesNothing) {
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
            member.client.handle_result(member.now);
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

TEST(JoinClient, RefusalForTheVersionEndsAMemberThatWasNeverReady) {
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

TEST(JoinClient, RefusedFromTheSenderOfTheLastJoinedEndsTheMember) {
    Member member;
    member.pass(milliseconds(0));
    member.joined(false, 0x1, 0x2, stranger);  // a switch that answers from another interface
    EXPECT_TRUE(member.receive(refused_message(wire::Refusal::full), stranger));
    EXPECT_TRUE(member.ended());
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

TEST(JoinClient, RepeatedReportsOfTooLongPacketsEndABusyMemberWithTheMtu) {
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

// Nobody reports that long packets are lost: the switch answers short JOINs only.
TEST(JoinClient, LostLongPacketsEndABusyMemberAfterTheHoldTime) {
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

// --------------------------------------------------------------------------------------------------------------- Group

TEST(JoinClient, JoinedByGroupIsReportedInTheNextJoin) {
    Member member(config_of_member(true));
    member.become_ready();
    member.pass(milliseconds(200), [&] { member.joined(true); });
    ASSERT_FALSE(member.joins.empty());
    EXPECT_FALSE(member.joins.back().receives_group);
    EXPECT_TRUE(member.receive(joined_by_group(), switch_address, true));
    member.pass(milliseconds(0));
    EXPECT_TRUE(member.joins.back().receives_group);
    member.joined(true);
    member.forget();
    member.pass(milliseconds(3400), [&] { member.joined(true); });
    EXPECT_LE(member.joins.size(), 15U) << "twelve JOINs in the hold time";
}

TEST(JoinClient, MemberThatDoesNotReceiveItsGroupSendsJoinsOftenAndRejoinsIt) {
    Member member(config_of_member(true));
    member.become_ready();
    member.pass(milliseconds(1000), [&] { member.joined(true); });
    EXPECT_GE(member.joins.size(), 19U);
    const auto forgotten = [](const MemberEvent& event) { return event.kind == Kind::group_forgotten; };
    EXPECT_GE(std::ranges::count_if(member.events, forgotten), 1);
    member.client.handle_group_lost();
    member.pass(milliseconds(50), [&] { member.joined(true); });
    member.forget();
    member.pass(seconds(5), [&] { member.joined(true); });
    EXPECT_LE(member.joins.size(), 21U);
    EXPECT_TRUE(member.events.empty());
}

TEST(JoinClient, MoreRequestedResultsThanGroupResultsShowALostGroup) {
    Member member(config_of_member(true));
    member.become_ready();
    member.receive(joined_by_group(), switch_address, true);
    member.pass(milliseconds(0));
    ASSERT_TRUE(member.joins.back().receives_group);
    for (int i = 0; i < 17; ++i) member.client.handle_data(switch_address, false, true, true, member.now);
    for (int i = 0; i < 3; ++i) member.client.handle_data(switch_address, true, false, true, member.now);
    member.pass(seconds(1), [&] { member.joined(true); });
    EXPECT_FALSE(member.joins.back().receives_group);
}

// ------------------------------------------------------------------------------------------------------- State archive

struct Writer {
    static constexpr bool reads = false;

    template <class T>
    void value(T& item) {
        const auto* at = reinterpret_cast<const std::byte*>(&item);
        out.insert(out.end(), at, at + sizeof item);
    }
    void time(Time& item) { value(item); }
    void stamp_us(std::uint32_t& item) { value(item); }
    void unread(std::uint8_t& item) { value(item); }
    void bytes(std::span<std::byte> item) { out.insert(out.end(), item.begin(), item.end()); }
    std::vector<std::byte> out;
};

struct Reader {
    static constexpr bool reads = true;

    template <class T>
    void value(T& item) {
        take(&item, sizeof item);
    }
    void time(Time& item) { value(item); }
    void stamp_us(std::uint32_t& item) { value(item); }
    void unread(std::uint8_t& item) { value(item); }
    void bytes(std::span<std::byte> item) { take(item.data(), item.size()); }
    void take(void* to, std::size_t size) {
        ASSERT_LE(at + size, from.size());
        if (size != 0) std::memcpy(to, from.data() + at, size);
        at += size;
    }
    std::span<const std::byte> from;
    std::size_t at = 0;
};

std::vector<std::byte> state_of(JoinClient& client) {
    Writer writer;
    client.persist(writer);
    return writer.out;
}

void restore(JoinClient& from, JoinClient& into) {
    const auto state = state_of(from);
    Reader reader{.from = state};
    into.persist(reader);
    ASSERT_EQ(reader.at, state.size());
}

// All output of a member for its driver, as text.
std::string output_of(JoinClient& client) {
    std::string out;
    while (const auto transmit = client.poll_transmit()) {
        const auto* join = std::get_if<wire::Join>(&transmit->message);
        out += join == nullptr ? "L" : join->begun ? "B" : "J";
        if (join != nullptr && join->receives_group) out += "g";
    }
    while (const auto event = client.poll_event()) {
        out += std::to_string(static_cast<int>(event->kind)) + "/" +
               std::to_string(static_cast<int>(event->cause.kind)) + "/" + std::to_string(event->cause.missing_units) +
               "/" + std::to_string(event->cause.missing_members) + "/" + std::to_string(event->cause.elapsed.count()) +
               "/" + std::to_string(event->cause.mtu) + "/" + std::to_string(event->cause.packet_bytes) +
               event->cause.text + ";";
    }
    return out + to_string(client.data_address()) + std::to_string(client.poll_timeout().time_since_epoch().count()) +
           std::to_string(client.answered_at().time_since_epoch().count()) + (client.was_ready() ? "r" : "-");
}

void random_step(JoinClient& client, unsigned dice, Time now) {
    const bool first = dice % 2 == 0;
    const auto numbered = [&](wire::Joined message) {
        message.epoch = dice / 32 % 4;
        message.number = dice / 128;
        return testing::encoded(message);
    };
    switch (dice / 2 % 13) {
        case 0: client.handle_message(numbered(joined_message(true)), switch_address, false, now); break;
        case 1:
            client.handle_message(numbered(joined_message(false, 3, first ? 2 : 0)), shard_address, false, now);
            break;
        case 2: client.handle_message(testing::encoded(joined_by_group()), switch_address, true, now); break;
        case 12:
            client.handle_message(testing::encoded(wire::Retry{.nonce = nonce,
                                                               .job = own_join.terms.job,
                                                               .token = own_join.terms.token,
                                                               .channel = own_join.terms.channel,
                                                               .cookie = dice}),
                                  switch_address, false, now);
            break;
        case 3: client.set_busy(first); break;
        case 4: client.handle_data(switch_address, first, true, true, now); break;
        case 5: client.handle_send_error(port_error(own_gradient()), now); break;
        case 6: client.handle_send_error(too_long_error(1472, first ? 1400 : 0), now); break;
        case 7:
            if (dice % 97 == 0) client.handle_group_lost();
            break;
        case 8:
            if (dice % 89 == 0) client.leave();
            break;
        case 9:
            if (dice % 83 == 0) {
                client.handle_message(testing::encoded(refused_message(wire::Refusal::full)), switch_address, false,
                                      now);
            }
            break;
        default: client.handle_timeout(now);
    }
}

// A restored member behaves like the original. persist() therefore includes the whole state.
TEST(JoinClient, RestoredMemberContinuesLikeTheOriginal) {
    for (unsigned seed = 1; seed <= 60; ++seed) {
        std::mt19937 random(seed);
        JoinClient original(config_of_member(seed % 2 == 0));
        Time now = start_time;
        for (int step = 0; step < 200; ++step) {
            JoinClient shadow(config_of_member(seed % 2 == 0));
            restore(original, shadow);
            now += milliseconds(random() % (seed % 5 == 0 ? 2000 : 120));
            const auto dice = static_cast<unsigned>(random());
            random_step(original, dice, now);
            random_step(shadow, dice, now);
            ASSERT_EQ(state_of(shadow), state_of(original)) << "seed " << seed << " step " << step;
            if (dice % 3 == 0) continue;  // keeps events and messages until the next step
            ASSERT_EQ(output_of(shadow), output_of(original)) << "seed " << seed << " step " << step;
        }
    }
}

}  // namespace
}  // namespace atp::control
