// SPDX-License-Identifier: Apache-2.0
#include "control/in_path_agent.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/control_messages.h"
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
    join.nonce = 0x4E4F;
    join.level = level;
    join.units = {{.unit = 0, .members = 1, .mask0 = 3, .direct = false, .ranks = {0}}};
    return join;
}

std::vector<std::byte> join(std::uint32_t job, std::uint32_t token) { return encoded(join_of(job, token)); }

std::vector<std::byte> leave(std::uint32_t job, std::uint32_t token) {
    return encoded(wire::Leave{.job = job, .token = token, .channel = 0, .unit = 0, .member = 0});
}

// Where a message comes from, goes to, and enters.
struct Datagram {
    wire::Address from;
    wire::Address to;
    std::uint32_t entrance = 0;

    [[nodiscard]] Datagram back() const { return {.from = to, .to = from, .entrance = entrance == 0 ? 0 : 9U}; }
};
wire::Address address(const char* text) { return *wire::Address::parse(text); }
const Datagram upwards{.from = address("10.0.0.1:50000"), .to = address("10.0.9.1:4790")};

InPathAgent::AgentChange handle(InPathAgent& admission, const std::vector<std::byte>& message, const Datagram& datagram,
                                Time now) {
    return admission.handle_message(
        {.bytes = message, .from = datagram.from, .to = datagram.to, .entrance = datagram.entrance}, now);
}

Change change_after(InPathAgent& admission, const std::vector<std::byte>& message, Time now) {
    return handle(admission, message, upwards, now).change;
}
Change change_after_answer(InPathAgent& admission, const wire::Joined& message, Time now) {
    return handle(admission, encoded(message), upwards.back(), now).change;
}

wire::Joined answer_to(const wire::Join& join, std::uint64_t group_number = 0) {
    return {.nonce = join.nonce,
            .job = join.terms.job,
            .token = join.terms.token,
            .channel = join.terms.channel,
            .group_number = group_number};
}

// A JOIN, and the JOINED that answers it.
InPathAgent::AgentChange exchange(InPathAgent& admission, const wire::Join& join, Time now,
                                  std::uint64_t group_number = 0, const Datagram& datagram = upwards) {
    EXPECT_EQ(handle(admission, encoded(join), datagram, now).change, Change::none)
        << "no switch has checked its address yet";
    return handle(admission, encoded(answer_to(join, group_number)), datagram.back(), now);
}

TEST(InPathAdmission, FirstJoinAdmitsItsJobOnce) {
    InPathAgent admission(4, seconds(10), 0);
    const auto verdict = exchange(admission, join_of(7, 0x5EED), at(0));
    EXPECT_EQ(verdict.change, Change::admit);
    EXPECT_EQ(verdict.job.job, 7U);
    EXPECT_EQ(verdict.job.token, 0x5EEDU);
    EXPECT_EQ(verdict.job.level, 0);
    EXPECT_EQ(exchange(admission, join_of(7, 0x5EED), at(1)).change, Change::none);
}

TEST(InPathAdmission, SilentJobExpiresAfterTheHoldTime) {
    InPathAgent admission(4, seconds(10), 0);
    exchange(admission, join_of(7, 1), at(0));
    exchange(admission, join_of(8, 1), at(0));
    exchange(admission, join_of(8, 1), at(9));
    EXPECT_FALSE(admission.poll_expired(at(10)));
    const auto expired = admission.poll_expired(at(11));
    ASSERT_TRUE(expired);
    EXPECT_EQ(expired->job, 7U);
    EXPECT_FALSE(admission.poll_expired(at(11)));
    EXPECT_EQ(exchange(admission, join_of(7, 2), at(11)).change, Change::admit);
}

TEST(InPathAdmission, LeaveExpiresItsOwnJobAfterADelay) {
    InPathAgent admission(4, seconds(10), 0);
    exchange(admission, join_of(7, 1), at(0));
    exchange(admission, join_of(8, 1), at(0));
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
    exchange(admission, join_of(7, 1), at(0));
    change_after(admission, leave(7, 1), at(1));
    EXPECT_EQ(exchange(admission, join_of(7, 1), at(2)).change, Change::none) << "the job was admitted all the time";
    EXPECT_FALSE(admission.poll_expired(at(12)));
    EXPECT_TRUE(admission.poll_expired(at(13)));
}

TEST(InPathAdmission, NextIncarnationAfterALeaveIsAdmitted) {
    InPathAgent admission(4, seconds(10), 0);
    exchange(admission, join_of(7, 1), at(0));
    change_after(admission, leave(7, 1), at(1));
    const auto verdict = exchange(admission, join_of(7, 2), at(1));
    EXPECT_EQ(verdict.change, Change::admit);
    EXPECT_EQ(verdict.job.token, 2U);
    EXPECT_EQ(admission.poll_expired(at(11))->token, 1U);
    EXPECT_FALSE(admission.poll_expired(at(11)));
}

TEST(InPathAdmission, IncarnationsOfAJobAreSeparate) {
    InPathAgent admission(4, seconds(10), 0);
    exchange(admission, join_of(7, 1), at(0));
    EXPECT_EQ(exchange(admission, join_of(7, 2), at(5)).change, Change::admit);
    const auto expired = admission.poll_expired(at(11));
    ASSERT_TRUE(expired);
    EXPECT_EQ(expired->token, 1U) << "JOINs of the other incarnation do not prolong it";
    EXPECT_FALSE(admission.poll_expired(at(11)));
}

TEST(InPathAdmission, JoinAloneOrJoinedAloneAdmitsNoJob) {
    InPathAgent admission(4, seconds(10), 0);
    const wire::Join join = join_of(7, 1);
    EXPECT_EQ(change_after_answer(admission, answer_to(join), at(0)), Change::none);
    EXPECT_EQ(change_after(admission, encoded(join), at(0)), Change::none);
    wire::Joined of_another = answer_to(join);
    ++of_another.nonce;
    EXPECT_EQ(change_after_answer(admission, of_another, at(0)), Change::none);
    EXPECT_EQ(change_after_answer(admission, answer_to(join), at(6)), Change::none) << "too late";
    EXPECT_EQ(change_after(admission, encoded(join), at(6)), Change::none);
    EXPECT_EQ(change_after_answer(admission, answer_to(join), at(7)), Change::admit);
}

TEST(InPathAdmission, GroupNumberIsReportedOnceAndWhenItChanges) {
    InPathAgent admission(4, seconds(10), 0);
    EXPECT_EQ(exchange(admission, join_of(7, 1), at(0), 5).change, Change::admit);
    const auto learnt = exchange(admission, join_of(7, 1), at(1), 5);
    EXPECT_EQ(learnt.change, Change::learn_group);
    EXPECT_EQ(learnt.group_number, 5U);
    EXPECT_EQ(exchange(admission, join_of(7, 1), at(2), 5).change, Change::none);
    EXPECT_EQ(exchange(admission, join_of(7, 1), at(3), 6).group_number, 6U);
    EXPECT_EQ(exchange(admission, join_of(7, 1), at(4)).change, Change::none);
}

TEST(InPathAdmission, JoinedCountsOnlyFromTheHostThatWasAskedToTheOneThatAsked) {
    InPathAgent admission(4, seconds(10), 0);
    const auto joined_on = [&](const wire::Address& from, const wire::Address& to, std::uint32_t entrance = 0) {
        const wire::Join join = join_of(7, 1);
        EXPECT_EQ(handle(admission, encoded(join), {upwards.from, upwards.to, 3}, at(0)).change, Change::none);
        return handle(admission, encoded(answer_to(join)), {from, to, entrance}, at(0)).change;
    };
    EXPECT_EQ(joined_on(upwards.from, upwards.from), Change::none) << "from itself to itself";
    EXPECT_EQ(joined_on(address("10.0.0.2:4790"), upwards.from), Change::none) << "another host answers";
    EXPECT_EQ(joined_on(upwards.to, address("10.0.0.1:50001")), Change::none) << "to another port";
    EXPECT_EQ(joined_on(upwards.to, upwards.from, 3), Change::none) << "forged behind the same interface";
    EXPECT_EQ(joined_on(upwards.to.with_port(40000), upwards.from, 2), Change::admit) << "another shard of the parent";
}

TEST(InPathAdmission, PairThatOneHostSendsToItselfAdmitsNoJob) {
    InPathAgent admission(4, seconds(10), 0);
    const Datagram to_itself{.from = address("10.0.0.5:1"), .to = address("10.0.0.5:2")};
    EXPECT_EQ(exchange(admission, join_of(7, 1), at(0), 0, to_itself).change, Change::none);
}

TEST(InPathAdmission, QuestionHasOneAnswer) {
    InPathAgent admission(4, seconds(10), 0);
    const wire::Join join = join_of(7, 1);
    exchange(admission, join, at(0), 5);
    EXPECT_EQ(change_after_answer(admission, answer_to(join, 6), at(0)), Change::none);
    EXPECT_EQ(exchange(admission, join, at(1), 7).group_number, 7U);
}

TEST(InPathAdmission, JobIsAdmittedDuringAFloodOfJoins) {
    InPathAgent admission(4, seconds(10), 0);
    for (std::uint32_t job = 0; job < 5'000; ++job) {
        const wire::Address forged =
            address(("10.1." + std::to_string(job / 250) + "." + std::to_string(job % 250) + ":1").c_str());
        handle(admission, join(job, 1), {.from = forged, .to = upwards.to}, at(0));
    }
    EXPECT_EQ(exchange(admission, join_of(20'000, 1), at(0)).change, Change::admit);
    for (std::uint32_t job = 0; job < 5'000; ++job) {
        handle(admission, join(job, 1), {.from = address("10.0.0.99:1"), .to = upwards.to}, at(1));
    }
    EXPECT_EQ(exchange(admission, join_of(20'001, 1), at(1)).change, Change::admit);
}

// The kernel copies at least this much of a message: tests/xdp/kernel_table_test.cc.
TEST(InPathAdmission, LongestJoinOfAUnitIsLearntWithoutItsPadding) {
    wire::Join join = join_of(7, 1, 1);
    wire::JoiningUnit& unit = join.units.front();
    unit.members = unit.mask0 = ~std::uint32_t{0};
    unit.ranks.resize(ATP_BITMAP_BITS);
    join.edges.resize(wire::max_edges);
    join.statements.assign(wire::max_statements, {.count = 1, .text = std::string(wire::max_statement_bytes, 'x')});
    join.job_name.assign(wire::max_job_name_bytes, 'n');
    std::vector<std::byte> bytes(2048);
    bytes.resize(wire::encode(join, bytes, 1472));
    ASSERT_EQ(bytes.size(), 1472U);
    bytes.resize(testing::longest_unit_join_bytes);
    InPathAgent admission(4, seconds(10), 1);
    change_after(admission, bytes, at(0));
    EXPECT_EQ(change_after_answer(admission, answer_to(join), at(0)), Change::admit);
    bytes.resize(testing::longest_unit_join_bytes - 1);
    EXPECT_FALSE(wire::decode<wire::Join>(bytes));
}

TEST(InPathAdmission, FullTableAdmitsNoJobUntilOneExpires) {
    InPathAgent admission(1, seconds(10), 0);
    EXPECT_EQ(exchange(admission, join_of(7, 1), at(0)).change, Change::admit);
    EXPECT_EQ(exchange(admission, join_of(8, 1), at(0)).change, Change::none);
    change_after(admission, leave(7, 1), at(1));
    EXPECT_TRUE(admission.poll_expired(at(4)));
    EXPECT_EQ(exchange(admission, join_of(8, 1), at(4)).change, Change::admit);
}

TEST(InPathAdmission, JoinsToAFullTableAreCounted) {
    InPathAgent admission(1, seconds(10), 0);
    exchange(admission, join_of(7, 1), at(0));
    exchange(admission, join_of(7, 1), at(1));
    EXPECT_EQ(admission.not_admitted(), 0U);
    exchange(admission, join_of(8, 1), at(1));
    exchange(admission, join_of(8, 1), at(2));
    exchange(admission, join_of(9, 1), at(2));
    EXPECT_EQ(admission.not_admitted(), 3U);
    exchange(admission, join_of(10, 1, ATP_LEVELS), at(2));  // level 2 is a server: no switch has this level
    EXPECT_EQ(admission.not_admitted(), 3U);
}

TEST(InPathAdmission, JobOfAnEarlierRunOfTheProgramStaysAdmitted) {
    InPathAgent admission(4, seconds(10), 0);
    admission.remember({.job = 7, .token = 1, .level = 0}, at(0));
    EXPECT_EQ(exchange(admission, join_of(7, 1), at(1)).change, Change::none);
    EXPECT_EQ(admission.poll_expired(at(12))->job, 7U);
}

// JOIN of one worker of a rack of two. The worker sends it to the switch of level 1, which the workers of all racks
// address.
wire::Join join_of_rack(std::uint32_t job) { return join_of(job, 1, 1); }

TEST(InPathAdmission, PlaceIsTheUnitAtLevel0AndAllUnitsAtLevel1) {
    wire::Join join = join_of_rack(7);
    join.terms.channel = 2;
    join.terms.mask1 = 0b1111;
    join.units.front().unit = 3;
    InPathAgent rack(4, seconds(10), 0);
    EXPECT_EQ(exchange(rack, join, at(0)).place, (AdmittedPlace{.channel = 2, .unit = 0b1000, .mask = 3}));
    EXPECT_EQ(exchange(rack, join, at(1)).place, (AdmittedPlace{.channel = 2, .unit = 0b1000, .mask = 3}));
    InPathAgent root(4, seconds(10), 1);
    EXPECT_EQ(exchange(root, join, at(0)).place, (AdmittedPlace{.channel = 2, .unit = 0, .mask = 0b1111}));
    InPathAgent full(0, seconds(10), 0);
    EXPECT_EQ(exchange(full, join, at(0)).place.mask, 0U);
}

TEST(InPathAdmission, SwitchAdmitsOnlyJobsThatNeedItsLevel) {
    wire::Join of_switch = join_of_rack(8);
    of_switch.units = {{.unit = 0, .members = 3, .mask0 = 3, .direct = false, .ranks = {0, 1}}};
    for (const std::uint8_t level : {std::uint8_t{0}, std::uint8_t{1}}) {
        InPathAgent admission(4, seconds(10), level);
        const auto verdict = exchange(admission, join_of_rack(7), at(0));
        EXPECT_EQ(verdict.change, Change::admit);
        EXPECT_EQ(verdict.job.level, level);
        EXPECT_EQ(exchange(admission, of_switch, at(0)).change, level == 1 ? Change::admit : Change::none)
            << "the rack has a switch of level 0, so a second switch of level 0 has no work";
        EXPECT_EQ(exchange(admission, join_of(9, 1), at(0)).change, level == 0 ? Change::admit : Change::none)
            << "a job of one switch has no work for a switch of level 1";
    }
}

TEST(InPathAdmission, OtherMessagesAdmitNoJob) {
    InPathAgent admission(4, seconds(10), 0);
    wire::Join to_a_server = join_of(7, 1, 2);
    std::vector<std::byte> cut = join(7, 1);
    cut.pop_back();
    for (const auto& message : {encoded(to_a_server), cut, encoded(wire::Stats{}), std::vector<std::byte>{}}) {
        EXPECT_EQ(change_after(admission, message, at(0)), Change::none);
    }
}

// ------------------------------------------------------------------------------------------- Members that get copies

// The member of a JOIN of rank `member` of `unit`, whose frame has no tag unless `is_tagged`.
std::optional<PassedMember> member_of(std::uint8_t level, unsigned unit, unsigned member, bool is_tagged = false) {
    InPathAgent admission(4, seconds(10), level);
    wire::Join join = join_of(7, 1, level);
    join.terms.mask1 = 0x7;
    join.units.front() = {.unit = static_cast<std::uint8_t>(unit), .members = 1U << member, .mask0 = 0xF, .ranks = {5}};
    const auto bytes = encoded(join);
    const auto answer = encoded(answer_to(join, 99));
    PassingMessage passing{.bytes = bytes, .from = upwards.from, .to = upwards.to, .entrance = 3};
    passing.ethernet[11] = std::byte{0xAB};
    passing.is_plain = !is_tagged;
    EXPECT_EQ(admission.handle_message(passing, at(0)).member, std::nullopt) << "the address may be forged";
    return admission.handle_message({.bytes = answer, .from = upwards.to, .to = upwards.from, .entrance = 9}, at(0))
        .member;
}

TEST(InPathAdmission, H108_MemberIsReachedWhereItsJoinCameFrom) {
    const auto member = member_of(0, 2, 3);
    ASSERT_TRUE(member);
    EXPECT_EQ(member->number, 2 * 32 + 3);
    EXPECT_EQ(member->address, upwards.from);
    EXPECT_EQ(member->entrance, 3U);
    EXPECT_EQ(member->ethernet[11], std::byte{0xAB});
    EXPECT_EQ(member_of(0, 2, 3, true), std::nullopt) << "a copy would need its tag";
}

TEST(InPathAdmission, H108_AboveRacksTheFirstMemberStandsForItsUnit) {
    EXPECT_EQ(member_of(1, 2, 3), std::nullopt);
    const auto member = member_of(1, 2, 0);
    ASSERT_TRUE(member);
    EXPECT_EQ(member->number, 2);
}

}  // namespace
}  // namespace atp::control
