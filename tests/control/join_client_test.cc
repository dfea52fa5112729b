// SPDX-License-Identifier: Apache-2.0
// How a member joins, uses its group, and is saved. Its failures are in join_client_loss_test.cc and
// join_client_evidence_test.cc.
#include <random>

#include "control/join_client_fixture.h"
#include "support/byte_archive.h"

namespace atp::control {
namespace {

using std::chrono::minutes;

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

TEST(JoinClient, EachJoinHasTheNameOfTheJob) {
    JoinClientConfig config = config_of_member();
    config.job_name = "resnet-50";
    JoinClient client(config);
    client.handle_timeout(Time(milliseconds(1)));
    const auto sent = client.poll_transmit();
    ASSERT_TRUE(sent);
    EXPECT_EQ(std::get<wire::Join>(sent->message).job_name, "resnet-50");
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

TEST(JoinClient, RetriesCauseOneJoinIn50Ms) {
    Member member;
    member.pass(milliseconds(10));
    for (std::uint64_t cookie = 1; cookie <= 100; ++cookie) {
        EXPECT_TRUE(member.receive(wire::Retry{.nonce = nonce,
                                               .job = own_join.terms.job,
                                               .token = own_join.terms.token,
                                               .channel = own_join.terms.channel,
                                               .cookie = cookie}));
        member.pass(milliseconds(1));
    }
    EXPECT_LE(member.joins.size(), 5U) << "100 RETRYs in 100 ms";
    EXPECT_GE(member.joins.back().cookie, 50U);
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
    for (int i = 0; i < 17; ++i) member.client.handle_data(switch_address, Receipt::asked_for, true, member.now);
    for (int i = 0; i < 3; ++i) member.client.handle_data(switch_address, Receipt::once, true, member.now);
    member.pass(seconds(1), [&] { member.joined(true); });
    EXPECT_FALSE(member.joins.back().receives_group);
}

// ---------------------------------------------------------------------------------------------------------------- Pace

wire::Joined joined_with_pace(std::uint8_t unit, std::uint8_t member, std::uint16_t waited_permille = 400) {
    wire::Joined message = joined_message(true);
    message.pace = {.share_percent = 90, .unit = unit, .member = member, .waited_permille = waited_permille};
    return message;
}

// Events `slow` of the member since the last call, and the member that each names.
std::vector<std::uint8_t> slow_members(Member& member) {
    std::vector<std::uint8_t> named;
    for (const MemberEvent& event : member.events) {
        if (event.kind == Kind::slow) named.push_back(event.pace.member);
    }
    member.events.clear();
    return named;
}

TEST(JoinClient, SlowMemberIsNamedOnceAndAgainAfterMinutes) {
    Member member;
    member.become_ready();
    const auto joined = [&] { member.receive(member.answer(joined_with_pace(0, 2))); };
    member.pass(minutes(1), joined);
    EXPECT_EQ(slow_members(member), std::vector<std::uint8_t>{2});
    member.pass(timing.slow_named, joined);
    EXPECT_EQ(slow_members(member), std::vector<std::uint8_t>{2});
}

TEST(JoinClient, MemberThatIsSlowInOneIntervalOnlyIsNotNamed) {
    Member member;
    member.become_ready();
    for (int turn = 0; turn < 4; ++turn) {
        member.pass(timing.hold, [&] { member.receive(member.answer(joined_with_pace(0, 2))); });
        member.pass(timing.hold, [&] { member.joined(true); });
    }
    EXPECT_TRUE(slow_members(member).empty());
}

TEST(JoinClient, AnotherSlowMemberIsNamedSoonAfterTheFirst) {
    Member member;
    member.become_ready();
    for (const std::uint8_t slow : std::initializer_list<std::uint8_t>{2, 3}) {
        member.pass(2 * timing.hold, [&] { member.receive(member.answer(joined_with_pace(0, slow))); });
    }
    EXPECT_EQ(slow_members(member), (std::vector<std::uint8_t>{2, 3}));
}

TEST(JoinClient, MemberForWhichTheOthersWaitBrieflyIsNotSlow) {
    Member member;
    member.become_ready();
    member.pass(minutes(1), [&] { member.receive(member.answer(joined_with_pace(0, 2, 100))); });
    EXPECT_TRUE(slow_members(member).empty());
}

// ------------------------------------------------------------------------------------------------------- State archive

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
               event->cause.text + "/" + std::to_string(event->pace.member) + ";";
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
        case 0:
            client.handle_message(
                numbered(first ? joined_with_pace(0, static_cast<std::uint8_t>(dice % 3)) : joined_message(true)),
                switch_address, false, now);
            break;
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
        case 4: client.handle_data(switch_address, first ? Receipt::once : Receipt::asked_for, true, now); break;
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
            ASSERT_TRUE(testing::copy_state(original, shadow));
            now += milliseconds(random() % (seed % 5 == 0 ? 2000 : 120));
            const auto dice = static_cast<unsigned>(random());
            random_step(original, dice, now);
            random_step(shadow, dice, now);
            ASSERT_EQ(testing::state_of(shadow), testing::state_of(original)) << "seed " << seed << " step " << step;
            if (dice % 3 == 0) continue;  // keeps events and messages until the next step
            ASSERT_EQ(output_of(shadow), output_of(original)) << "seed " << seed << " step " << step;
        }
    }
}

}  // namespace
}  // namespace atp::control
