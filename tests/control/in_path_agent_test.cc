// SPDX-License-Identifier: Apache-2.0
#include "control/in_path_agent.h"

#include <gtest/gtest.h>

#include <vector>

#include "wire/control.h"

namespace atp::control {
namespace {

using Change = InPathAgent::Change;
using std::chrono::seconds;

Time at(int second) { return Time{} + seconds(second); }

std::vector<std::byte> encoded(const auto& message) {
    std::vector<std::byte> bytes(1024);
    bytes.resize(wire::encode(message, bytes));
    return bytes;
}

wire::Join join_of(std::uint32_t job, std::uint32_t token, std::uint8_t level = 0) {
    wire::Join join;
    join.terms.job = job;
    join.terms.token = token;
    join.terms.lanes = 352;
    join.terms.window_log2 = 8;
    join.terms.aggregators = 4096;
    join.terms.mask1 = 1;
    join.terms.scale = 1e8;
    join.level = level;
    join.units = {{.unit = 0, .members = 1, .mask0 = 3, .direct = false, .ranks = {0}}};
    return join;
}

std::vector<std::byte> join(std::uint32_t job, std::uint32_t token) { return encoded(join_of(job, token)); }

std::vector<std::byte> leave(std::uint32_t job, std::uint32_t token) {
    return encoded(wire::Leave{.job = job, .token = token, .channel = 0, .unit = 0, .member = 0});
}

Change change_after(InPathAgent& admission, const std::vector<std::byte>& message, Time now) {
    return admission.handle_message(message, now).change;
}

TEST(InPathAdmission, FirstJoinAdmitsItsJobOnce) {
    InPathAgent admission(4, seconds(10), 0);
    const auto verdict = admission.handle_message(join(7, 0x5EED), at(0));
    EXPECT_EQ(verdict.change, Change::admit);
    EXPECT_EQ(verdict.job.job, 7U);
    EXPECT_EQ(verdict.job.token, 0x5EEDU);
    EXPECT_EQ(verdict.job.level, 0);
    EXPECT_EQ(change_after(admission, join(7, 0x5EED), at(1)), Change::none);
}

TEST(InPathAdmission, SilentJobExpiresAfterTheHoldTime) {
    InPathAgent admission(4, seconds(10), 0);
    change_after(admission, join(7, 1), at(0));
    change_after(admission, join(8, 1), at(0));
    change_after(admission, join(8, 1), at(9));
    EXPECT_FALSE(admission.poll_expired(at(10)));
    const auto expired = admission.poll_expired(at(11));
    ASSERT_TRUE(expired);
    EXPECT_EQ(expired->job, 7U);
    EXPECT_FALSE(admission.poll_expired(at(11)));
    EXPECT_EQ(change_after(admission, join(7, 2), at(11)), Change::admit);
}

TEST(InPathAdmission, LeaveExpiresItsOwnJobAfterADelay) {
    InPathAgent admission(4, seconds(10), 0);
    change_after(admission, join(7, 1), at(0));
    change_after(admission, join(8, 1), at(0));
    change_after(admission, leave(7, 2), at(0));
    change_after(admission, leave(9, 1), at(0));
    EXPECT_FALSE(admission.poll_expired(at(4)));
    change_after(admission, leave(7, 1), at(4));
    EXPECT_FALSE(admission.poll_expired(at(5))) << "other members of the job still have time to send a JOIN";
    const auto expired = admission.poll_expired(at(7));
    ASSERT_TRUE(expired);
    EXPECT_EQ(expired->job, 7U);
    EXPECT_FALSE(admission.poll_expired(at(7)));
}

TEST(InPathAdmission, LeaveOfOneMemberOrChannelKeepsTheJob) {
    InPathAgent admission(4, seconds(10), 0);
    change_after(admission, join(7, 1), at(0));
    change_after(admission, leave(7, 1), at(1));
    EXPECT_EQ(change_after(admission, join(7, 1), at(2)), Change::none) << "the job was admitted all the time";
    EXPECT_FALSE(admission.poll_expired(at(12)));
    EXPECT_TRUE(admission.poll_expired(at(13)));
}

TEST(InPathAdmission, NextIncarnationAfterALeaveIsAdmitted) {
    InPathAgent admission(4, seconds(10), 0);
    change_after(admission, join(7, 1), at(0));
    change_after(admission, leave(7, 1), at(1));
    const auto verdict = admission.handle_message(join(7, 2), at(1));
    EXPECT_EQ(verdict.change, Change::admit);
    EXPECT_EQ(verdict.job.token, 2U);
    EXPECT_FALSE(admission.poll_expired(at(11)));
}

TEST(InPathAdmission, OtherTokenOfALiveJobIsIgnored) {
    InPathAgent admission(4, seconds(10), 0);
    change_after(admission, join(7, 1), at(0));
    EXPECT_EQ(change_after(admission, join(7, 2), at(5)), Change::none);
    const auto expired = admission.poll_expired(at(11));
    ASSERT_TRUE(expired);
    EXPECT_EQ(expired->token, 1U) << "JOINs with the wrong token do not prolong the job";
}

TEST(InPathAdmission, FullTableAdmitsNoJobUntilOneExpires) {
    InPathAgent admission(1, seconds(10), 0);
    EXPECT_EQ(change_after(admission, join(7, 1), at(0)), Change::admit);
    EXPECT_EQ(change_after(admission, join(8, 1), at(0)), Change::none);
    change_after(admission, leave(7, 1), at(1));
    EXPECT_TRUE(admission.poll_expired(at(4)));
    EXPECT_EQ(change_after(admission, join(8, 1), at(4)), Change::admit);
}

TEST(InPathAdmission, JoinsToAFullTableAreCounted) {
    InPathAgent admission(1, seconds(10), 0);
    change_after(admission, join(7, 1), at(0));
    change_after(admission, join(7, 1), at(1));
    change_after(admission, join(7, 2),
                 at(1));  // another token for a known job: refused, but not counted as a full table
    EXPECT_EQ(admission.not_admitted(), 0U);
    change_after(admission, join(8, 1), at(1));
    change_after(admission, join(8, 1), at(2));
    change_after(admission, join(9, 1), at(2));
    EXPECT_EQ(admission.not_admitted(), 3U);
    change_after(admission, encoded(join_of(10, 1, ATP_LEVELS)),
                 at(2));  // level 2 is a server: no switch has this level
    EXPECT_EQ(admission.not_admitted(), 3U);
}

TEST(InPathAdmission, JobOfAnEarlierRunOfTheProgramStaysAdmitted) {
    InPathAgent admission(4, seconds(10), 0);
    admission.remember({.job = 7, .token = 1, .level = 0}, at(0));
    EXPECT_EQ(change_after(admission, join(7, 1), at(1)), Change::none);
    EXPECT_EQ(admission.poll_expired(at(12))->job, 7U);
}

// JOIN of one worker of a rack of two. The worker sends it to the switch of level 1, which the workers of all racks
// address.
wire::Join join_of_rack(std::uint32_t job) { return join_of(job, 1, 1); }

TEST(InPathAdmission, SwitchAdmitsOnlyJobsThatNeedItsLevel) {
    wire::Join of_switch = join_of_rack(8);
    of_switch.units = {{.unit = 0, .members = 3, .mask0 = 3, .direct = false, .ranks = {0, 1}}};
    for (const std::uint8_t level : {std::uint8_t{0}, std::uint8_t{1}}) {
        InPathAgent admission(4, seconds(10), level);
        const auto verdict = admission.handle_message(encoded(join_of_rack(7)), at(0));
        EXPECT_EQ(verdict.change, Change::admit);
        EXPECT_EQ(verdict.job.level, level);
        EXPECT_EQ(change_after(admission, encoded(of_switch), at(0)), level == 1 ? Change::admit : Change::none)
            << "the rack has a switch of level 0, so a second switch of level 0 has no work";
        EXPECT_EQ(change_after(admission, join(9, 1), at(0)), level == 0 ? Change::admit : Change::none)
            << "a job of one switch has no work for a switch of level 1";
    }
}

TEST(InPathAdmission, OtherMessagesAdmitNoJob) {
    InPathAgent admission(4, seconds(10), 0);
    wire::Join to_a_server = join_of(7, 1, 2);
    wire::Join of_another_protocol = join_of(7, 1);
    of_another_protocol.terms.protocol = wire::ChannelProtocol::switchml;
    std::vector<std::byte> cut = join(7, 1);
    cut.pop_back();
    for (const auto& message :
         {encoded(to_a_server), encoded(of_another_protocol), cut, encoded(wire::Stats{}), std::vector<std::byte>{}}) {
        EXPECT_EQ(change_after(admission, message, at(0)), Change::none);
    }
}

}  // namespace
}  // namespace atp::control
