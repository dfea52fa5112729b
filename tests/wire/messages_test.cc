// SPDX-License-Identifier: Apache-2.0
// Messages that build the tree of switches. An encoded message decodes to the same fields, and invalid messages are
// refused.
#include "wire/join_messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "support/control_messages.h"
#include "wire/control.h"

namespace atp::wire {
namespace {

using testing::encoded;
using Bytes = std::vector<std::byte>;

Join some_join() {
    Join join = testing::join_of_worker();
    join.terms.first_seq = 0xFFFFFFF0;
    join.terms.group = {.family = 4, .port = 4792, .host = {std::byte{239}, std::byte{192}}};
    return join;
}

Join join_of_switch() {
    Join join = some_join();
    join.level = 1;
    join.units = {{.unit = 1, .members = 0x7, .mask0 = 0x7, .direct = false, .ranks = {0, 5, 9}}};
    return join;
}

Join join_of_server() {
    Join join = some_join();
    join.level = 2;
    join.begun = true;
    join.receives_group = true;
    join.terms.server = {.family = 4, .port = 4791, .host = {std::byte{10}, std::byte{0}, std::byte{0}, std::byte{9}}};
    join.units = {{.unit = 0, .members = 0x3, .mask0 = 0x3, .direct = false, .ranks = {0, 1}},
                  {.unit = 1, .members = 0x1, .mask0 = 0x1, .direct = true, .ranks = {2}},
                  {.unit = 2, .members = 0x1, .mask0 = 0x1, .direct = true, .ranks = {3}}};
    return join;
}

// --- programs of other times

TEST(JoinMessages, JoinOfAnEarlierProgramHasNoName) {
    Bytes join(288);
    Join sent = join_of_server();
    const std::size_t size = encode(sent, join, 0);
    ASSERT_GT(size, 2U);
    const std::size_t named = size - 2;  // where an earlier program ends
    const auto at_end = decode<Join>(std::span(join).first(named));
    ASSERT_TRUE(at_end);
    EXPECT_EQ(at_end->job_name, "");
    EXPECT_EQ(at_end->units, sent.units);
    // Its code follows, of any bytes, and then padding.
    join[2] = static_cast<std::byte>(named >> 8U), join[3] = static_cast<std::byte>(named);
    std::ranges::fill(std::span(join).subspan(named, 60), std::byte{0xFF});
    const auto with_code = decode<Join>(join);
    ASSERT_TRUE(with_code);
    EXPECT_EQ(with_code->job_name, "");
    EXPECT_FALSE(decode<Join>(std::span(join).first(named - 1)));
}

TEST(JoinMessages, NameIsCutAndHasNoControlCharacters) {
    Join sent = some_join();
    sent.job_name = "a\tb" + std::string(100, 'n');
    const auto read = decode<Join>(encoded(sent));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->job_name, "a?b" + std::string(60, 'n'));
}

// --- round trips

TEST(JoinMessages, JoinDecodesToItsFields) {
    for (const Join& join : {some_join(), join_of_switch(), join_of_server()}) {
        const auto read = decode<Join>(encoded(join));
        ASSERT_TRUE(read.has_value());
        EXPECT_EQ(read->terms, join.terms);
        EXPECT_EQ(read->level, join.level);
        EXPECT_EQ(read->begun, join.begun);
        EXPECT_EQ(read->receives_group, join.receives_group);
        EXPECT_EQ(read->units, join.units);
    }
}

TEST(JoinMessages, UnitsAndRanksOfTheLargestJobFitInOneJoin) {
    Join join = some_join();
    join.level = 2;
    join.terms.mask1 = 0xFFFFFFFF;
    join.units.clear();
    for (std::uint8_t unit = 0; unit < 32; ++unit) {
        JoiningUnit next{.unit = unit, .members = 0xFFFFFFFF, .mask0 = 0xFFFFFFFF, .direct = false, .ranks = {}};
        for (unsigned member = 0; member < 32; ++member) {
            next.ranks.push_back(static_cast<std::uint16_t>(unit * 32U + member));
        }
        join.units.push_back(next);
    }
    const auto read = decode<Join>(encoded(join));
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->units, join.units);
}

TEST(JoinMessages, AnswersDecodeToTheirFields) {
    const auto joined = decode<Joined>(encoded(Joined{.job = 1,
                                                      .token = 2,
                                                      .channel = 3,
                                                      .ready = true,
                                                      .missing_units = 0x80000001,
                                                      .missing_members = 0x40000002}));
    ASSERT_TRUE(joined.has_value());
    EXPECT_EQ(joined->job, 1U);
    EXPECT_EQ(joined->token, 2U);
    EXPECT_EQ(joined->channel, 3U);
    EXPECT_TRUE(joined->ready);
    EXPECT_EQ(joined->missing_units, 0x80000001U);
    EXPECT_EQ(joined->missing_members, 0x40000002U);

    for (std::uint8_t reason = 1; reason <= static_cast<std::uint8_t>(Refusal::unsupported); ++reason) {
        const auto refused = decode<Refused>(encoded(
            Refused{.job = 4, .token = 5, .channel = 6, .reason = static_cast<Refusal>(reason), .text = "because"}));
        ASSERT_TRUE(refused.has_value());
        EXPECT_EQ(refused->reason, static_cast<Refusal>(reason));
        EXPECT_EQ(refused->text, "because");
        EXPECT_NE(to_string(refused->reason), "unknown");
    }

    const auto leave = decode<Leave>(encoded(Leave{.job = 7, .token = 8, .channel = 9, .unit = 31, .member = 30}));
    ASSERT_TRUE(leave.has_value());
    EXPECT_EQ(leave->unit, 31);
    EXPECT_EQ(leave->member, 30);
}

// --- lengths

TEST(JoinMessages, LongTextIsTruncated) {
    const Bytes bytes = encoded(Refused{.reason = Refusal::terms, .text = std::string(10'000, 'x')});
    EXPECT_EQ(decode<Refused>(bytes)->text.size(), max_refusal_bytes);
}

TEST(JoinMessages, EveryTruncationOfSeveralUnitsIsRefused) {
    const Bytes whole = encoded(join_of_server());
    ASSERT_TRUE(decode<Join>(whole).has_value());
    const std::size_t of_an_earlier_program = whole.size() - sizeof(std::uint16_t);
    for (std::size_t size = 0; size < whole.size(); ++size) {
        if (size == of_an_earlier_program) continue;
        EXPECT_FALSE(decode<Join>(std::span(whole).first(size)).has_value()) << size << " bytes";
    }
}

// --- refusals

TEST(JoinMessages, InconsistentJoinIsRefused) {
    const std::vector<std::function<void(Join&)>> changes = {
        [](Join& join) { join.terms.token = 0; },
        [](Join& join) { join.terms.lanes = 0; },
        [](Join& join) { join.terms.lanes = 1; },  // the audit lane, and no lane for elements
        [](Join& join) { join.terms.lanes = ATP_MAX_LANES + 1; },
        [](Join& join) { join.terms.window_log2 = ATP_WINDOW_LOG2_MAX + 1; },
        [](Join& join) { join.terms.mask1 = 0; },
        [](Join& join) { join.terms.mask1 = 0x5; },  // the units of a job are 0 to n - 1 without a gap
        [](Join& join) { join.terms.scale = 0; },
        [](Join& join) { join.terms.scale = -1; },
        [](Join& join) { join.terms.scale = std::numeric_limits<double>::infinity(); },
        [](Join& join) { join.terms.scale = std::numeric_limits<double>::quiet_NaN(); },
        [](Join& join) { join.terms.server.family = 5; },
        [](Join& join) { join.terms.group.family = 5; },
        [](Join& join) { join.terms.group.host[0] = std::byte{240}; },  // no IPv4 group; next row: no IPv6 group
        [](Join& join) { join.terms.group.family = 6; },
        [](Join& join) { join.level = 3; },
        [](Join& join) { join.units.clear(); },
        [](Join& join) { join.units[0].unit = 3; },   // not a unit of the job
        [](Join& join) { join.units[0].unit = 34; },  // not a unit of any job
        [](Join& join) { join.units[0].mask0 = 0xD; },
        [](Join& join) { join.units[0].mask0 = 0x3; },    // the member is not in the mask
        [](Join& join) { join.units[0].direct = true; },  // a direct worker at level 0
        [](Join& join) { join.units[0].ranks = {ATP_WORKER_ALL}; },
        [](Join& join) {  // two workers in one message
            join.units[0].members = 0x5;
            join.units[0].ranks = {1, 2};
        },
        [](Join& join) { join.units.push_back(join.units[0]); },
    };
    for (std::size_t at = 0; at < changes.size(); ++at) {
        Join join = some_join();
        changes[at](join);
        EXPECT_FALSE(decode<Join>(encoded(join)).has_value()) << at;
    }
}

TEST(JoinMessages, JoinOfOneWorkerOfARackAtTheRootIsAccepted) {
    Join alone = some_join();
    alone.level = 1;
    const auto read = decode<Join>(encoded(alone));
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->units, alone.units);
}

TEST(JoinMessages, InconsistentJoinOfASwitchIsRefused) {
    Join part = join_of_switch();
    part.units[0].members = 0x3;
    part.units[0].ranks = {0, 5};
    EXPECT_FALSE(decode<Join>(encoded(part)).has_value()) << "the switch of a rack joins for all members";
    Join wide = join_of_switch();
    wide.units[0].direct = true;
    EXPECT_FALSE(decode<Join>(encoded(wide)).has_value()) << "a direct unit has one worker";
    Join some = join_of_server();
    some.units.pop_back();
    some.cookie = 1;
    EXPECT_FALSE(decode<Join>(encoded(some)).has_value()) << "the last switch joins for all units";
    Join twice = join_of_server();
    twice.units[1].unit = 0;
    EXPECT_FALSE(decode<Join>(encoded(twice)).has_value()) << "a unit occurs twice";
}

TEST(JoinMessages, OtherFieldsOutOfRangeAreRefused) {
    EXPECT_FALSE(decode<Leave>(encoded(Leave{.job = 1, .token = 0})).has_value());
    EXPECT_FALSE(decode<Leave>(encoded(Leave{.job = 1, .token = 1, .channel = 0, .unit = 32})).has_value());
    EXPECT_FALSE(
        decode<Leave>(encoded(Leave{.job = 1, .token = 1, .channel = 0, .unit = 0, .member = 32})).has_value());
    for (const unsigned reason : {0U, 11U, 255U}) {
        const auto wrong = static_cast<Refusal>(reason);
        EXPECT_FALSE(decode<Refused>(encoded(Refused{.reason = wrong, .text = {}})).has_value());
        EXPECT_EQ(to_string(wrong), "unknown");
    }
}

}  // namespace
}  // namespace atp::wire
