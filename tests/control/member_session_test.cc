// SPDX-License-Identifier: Apache-2.0
#include "control/member_session.h"

#include <gtest/gtest.h>

#include "control/codes_fixture.h"

namespace atp::control {
namespace {

TEST(MemberSession, SessionOfARestartedSwitchFollowsOnItsFirstAnswerWithACode) {
    Joined pair;
    Switch restarted(second_start);
    EXPECT_FALSE(restarted.check_join(pair.member.join()).believed);
    EXPECT_EQ(pair.member.hear(restarted.retry()), Belief::believed);
    EXPECT_TRUE(restarted.check_join(pair.member.join()).believed);
    EXPECT_EQ(pair.member.hear(restarted.encoded(joined_message(3))), Belief::believed);
    EXPECT_TRUE(restarted.check_join(pair.member.join()).believed);
    EXPECT_TRUE(restarted.check_join(pair.member.join()).believed);
    EXPECT_TRUE(restarted.check_leave(pair.member.leave()));
}

TEST(MemberSession, H101_RecordedAnswerOfAnEarlierProcessProvesNoSession) {
    Joined pair;
    const Bytes old_retry = pair.node.retry();
    const Bytes old_answer = pair.answer;
    Switch restarted(second_start);
    wire::Joined fresh = joined_message();
    const auto join_there = [&] {
        static_cast<void>(pair.member.hear(restarted.retry()));
        for (int joins = 0; joins < 2; ++joins) static_cast<void>(restarted.check_join(pair.member.join()));
        fresh.epoch += 10;
        return pair.member.hear(restarted.encoded(fresh));
    };
    EXPECT_EQ(join_there(), Belief::believed);
    for (int round = 0; round < 10; ++round) {
        static_cast<void>(pair.member.hear(old_retry));
        static_cast<void>(pair.member.join());
        EXPECT_EQ(pair.member.hear(old_answer), Belief::stray);
        fresh.epoch += 10;
        EXPECT_EQ(pair.member.hear(restarted.encoded(fresh)), Belief::believed);
    }
}

// Who reads packets knows nonce and channel, and a RETRY has no code.
TEST(MemberSession, H101_ForgedRetriesLeaveARunningSessionAsItIs) {
    Joined pair;
    Switch forger(second_start);
    for (int round = 0; round < 50; ++round) {
        static_cast<void>(pair.member.hear(forger.retry()));
        const Bytes one = pair.member.join();
        static_cast<void>(pair.member.hear(forger.retry()));
        const Bytes other = pair.member.join();
        const auto reaches = [&](const Bytes& join) {
            const auto decoded = wire::decode<wire::Join>(join);
            return !pair.node.gatekeeper.handle_join(*decoded, member_address, pair.node.now) &&
                   pair.node.check_join(join).believed;
        };
        EXPECT_TRUE(reaches(one) || reaches(other)) << "one of two JOINs is of the session, and has a valid cookie";
        pair.node.now += milliseconds(250);
        EXPECT_EQ(pair.member.hear(pair.node.encoded(joined_message())), Belief::believed);
    }
    EXPECT_TRUE(pair.node.check_leave(pair.member.leave()));
}

TEST(MemberSession, WithoutAKeyForItsNameASwitchIsDoubted) {
    Member member(key_for_switch(vision, "spine"));
    EXPECT_EQ(member.hear(Switch().retry()), Belief::unproven);
    EXPECT_EQ(member.session.problem(),
              "the switch asks for a key at 'leaf', and there is none: write one with `atp key for`");
    EXPECT_EQ(member.hear(Switch(first_start, nullptr).retry()), Belief::unproven) << "an open switch";
    EXPECT_EQ(member.session.problem().substr(0, 27), "the switch asks for no key:");
    EXPECT_EQ(wire::decode<wire::Join>(member.join())->cookie, 0U) << "it goes on asking";
    EXPECT_EQ(member.hear(testing::encoded(refused_message())), Belief::unproven);
    EXPECT_EQ(member.session.problem(), "no room");
    EXPECT_EQ(member.hear(testing::encoded(joined_message())), Belief::stray);
}

}  // namespace
}  // namespace atp::control
