// SPDX-License-Identifier: Apache-2.0
// The messages that build and observe the tree of switches: encoded messages decode to the same fields, and invalid
// ones are refused.
#include "wire/control.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "support/control_messages.h"
#include "support/random.h"
#include "wire/packet.h"

namespace atp::wire {
namespace {

using testing::encoded;
using testing::Random;
using Bytes = std::vector<std::byte>;

Join some_join() {
    Join join = testing::join_of_worker();
    join.terms.first_seq = 0xFFFFFFF0;
    join.terms.protocol = ChannelProtocol::switchml_faithful;
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

const Welcome some_welcome{.nonce = 0x1122334455667788,
                           .received_bytes = 1500,
                           .path = {{.id = 1, .aggregators = 2, .lanes = 3, .slots = 0x01020304},
                                    {.id = std::numeric_limits<std::uint64_t>::max(), .aggregators = 5, .lanes = 6}},
                           .software = "atp 0.1.0"};

bool decodes(std::span<const std::byte> bytes, ControlType type) {
    switch (type) {
        case ControlType::join: return decode_join(bytes).has_value();
        case ControlType::joined: return decode_joined(bytes).has_value();
        case ControlType::refused: return decode_refused(bytes).has_value();
        case ControlType::leave: return decode_leave(bytes).has_value();
        case ControlType::hello: return decode_hello(bytes).has_value();
        case ControlType::welcome: return decode_welcome(bytes).has_value();
        case ControlType::stats: return decode_stats(bytes).has_value();
        case ControlType::report: return decode_report(bytes).has_value();
    }
    return false;
}

constexpr std::array all_types = {ControlType::join,  ControlType::joined,  ControlType::refused, ControlType::leave,
                                  ControlType::hello, ControlType::welcome, ControlType::stats,   ControlType::report};

std::vector<Bytes> one_of_each() {
    return {encoded(join_of_server()),
            encoded(Joined{.job = 1, .token = 2, .channel = 3, .ready = true}),
            encoded(Refused{.job = 1, .token = 2, .channel = 3, .reason = Refusal::full, .text = "no room"}),
            encoded(Leave{.job = 1, .token = 2, .channel = 3, .unit = 4, .member = 5}),
            encoded(Hello{.nonce = 1}),
            encoded(some_welcome),
            encoded(Stats{.nonce = 1, .snapshot = 2, .part = 3}),
            encoded(Report{.nonce = 1, .snapshot = 2, .part = 3, .parts = 4, .text = "{}"})};
}

// --- round trips

TEST(Control, JoinDecodesToItsFields) {
    for (const Join& join : {some_join(), join_of_switch(), join_of_server()}) {
        const auto read = decode_join(encoded(join));
        ASSERT_TRUE(read.has_value());
        EXPECT_EQ(read->terms, join.terms);
        EXPECT_EQ(read->level, join.level);
        EXPECT_EQ(read->begun, join.begun);
        EXPECT_EQ(read->receives_group, join.receives_group);
        EXPECT_EQ(read->units, join.units);
    }
}

TEST(Control, LargestJobFitsOneJoin) {
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
    const auto read = decode_join(encoded(join));
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->units, join.units);
}

TEST(Control, AnswersDecodeToTheirFields) {
    const auto joined = decode_joined(encoded(Joined{.job = 1,
                                                     .token = 2,
                                                     .channel = 3,
                                                     .ready = true,
                                                     .missing_units = 0x80000001,
                                                     .missing_members = 0x40000002,
                                                     .stream = 200}));
    ASSERT_TRUE(joined.has_value());
    EXPECT_EQ(joined->job, 1U);
    EXPECT_EQ(joined->token, 2U);
    EXPECT_EQ(joined->channel, 3U);
    EXPECT_TRUE(joined->ready);
    EXPECT_EQ(joined->missing_units, 0x80000001U);
    EXPECT_EQ(joined->missing_members, 0x40000002U);
    EXPECT_EQ(joined->stream, 200);

    for (std::uint8_t reason = 1; reason <= static_cast<std::uint8_t>(Refusal::unsupported); ++reason) {
        const auto refused = decode_refused(encoded(
            Refused{.job = 4, .token = 5, .channel = 6, .reason = static_cast<Refusal>(reason), .text = "because"}));
        ASSERT_TRUE(refused.has_value());
        EXPECT_EQ(refused->reason, static_cast<Refusal>(reason));
        EXPECT_EQ(refused->text, "because");
        EXPECT_NE(to_string(refused->reason), "unknown");
    }

    const auto leave = decode_leave(encoded(Leave{.job = 7, .token = 8, .channel = 9, .unit = 31, .member = 30}));
    ASSERT_TRUE(leave.has_value());
    EXPECT_EQ(leave->unit, 31);
    EXPECT_EQ(leave->member, 30);
}

TEST(Control, WelcomeDecodesToItsFields) {
    const auto read = decode_welcome(encoded(some_welcome));
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->nonce, some_welcome.nonce);
    EXPECT_EQ(read->received_bytes, 1500U);
    EXPECT_EQ(read->path, some_welcome.path);
    EXPECT_EQ(read->software, "atp 0.1.0");
}

TEST(Control, QuestionsAndReportsDecodeToTheirFields) {
    EXPECT_EQ(decode_hello(encoded(Hello{.nonce = 0xFEDCBA9876543210}))->nonce, 0xFEDCBA9876543210U);
    const auto stats = decode_stats(encoded(Stats{.nonce = 1, .snapshot = 2, .part = 3}));
    ASSERT_TRUE(stats.has_value());
    EXPECT_EQ(stats->nonce, 1U);
    EXPECT_EQ(stats->snapshot, 2U);
    EXPECT_EQ(stats->part, 3U);
    const auto report = decode_report(
        encoded(Report{.nonce = 1, .snapshot = 2, .part = 3, .parts = 4, .text = std::string(report_part_bytes, 'x')}));
    ASSERT_TRUE(report.has_value());
    EXPECT_EQ(report->part, 3U);
    EXPECT_EQ(report->parts, 4U);
    EXPECT_EQ(report->text, std::string(report_part_bytes, 'x'));
}

// --- lengths

TEST(Control, PaddingChangesNoField) {
    const Bytes hello = encoded(Hello{.nonce = 5}, std::size_t{9000});
    ASSERT_EQ(hello.size(), 9000U);
    EXPECT_EQ(decode_hello(hello)->nonce, 5U);
    EXPECT_EQ(hello.back(), std::byte{0});
    const Bytes welcome = encoded(some_welcome, std::size_t{9000});
    ASSERT_EQ(welcome.size(), 9000U);
    EXPECT_EQ(decode_welcome(welcome)->path, some_welcome.path);
    EXPECT_GT(encoded(some_welcome, std::size_t{10}).size(), 10U) << "no message is cut";
}

TEST(Control, StatsRequestIsAsLongAsItsLongestAnswer) {
    const Bytes question = encoded(Stats{.nonce = 1, .snapshot = 0, .part = 0});
    const Bytes answer = encoded(
        Report{.nonce = 1, .snapshot = 1, .part = 0, .parts = 1, .text = std::string(2 * report_part_bytes, 'x')});
    EXPECT_EQ(question.size(), answer.size());
    const Bytes shorter(question.begin(), question.end() - 1);
    EXPECT_FALSE(decode_stats(shorter).has_value());
}

TEST(Control, TooSmallBufferIsNotWritten) {
    for (const Bytes& whole : one_of_each()) {
        Bytes small(whole.size() - 1);
        const ControlType type = *control_type(whole);
        std::size_t written = 1;
        if (type == ControlType::join) written = encode(join_of_server(), small);
        if (type == ControlType::joined) written = encode(Joined{.job = 1}, small);
        if (type == ControlType::refused) {
            written =
                encode(Refused{.job = 1, .token = 2, .channel = 3, .reason = Refusal::full, .text = "no room"}, small);
        }
        if (type == ControlType::leave) written = encode(Leave{.job = 1}, small);
        if (type == ControlType::hello) written = encode(Hello{.nonce = 1}, small);
        if (type == ControlType::welcome) written = encode(some_welcome, small);
        if (type == ControlType::stats) written = encode(Stats{.nonce = 1}, small);
        if (type == ControlType::report) {
            written = encode(Report{.nonce = 1, .snapshot = 2, .part = 3, .parts = 4, .text = "{}"}, small);
        }
        EXPECT_EQ(written, 0U) << to_string(type);
        EXPECT_EQ(encode(Joined{.job = 1}, {}), 0U);
    }
}

TEST(Control, LongTextIsTruncated) {
    const Bytes bytes = encoded(Refused{.reason = Refusal::terms, .text = std::string(10'000, 'x')});
    EXPECT_EQ(decode_refused(bytes)->text.size(), max_refusal_bytes);
}

TEST(Control, EveryTruncationIsRefused) {
    for (const Bytes& whole : one_of_each()) {
        const ControlType type = *control_type(whole);
        ASSERT_TRUE(decodes(whole, type));
        for (std::size_t size = 0; size < whole.size(); ++size) {
            const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
            EXPECT_FALSE(decodes(cut, type)) << to_string(type) << " of " << size << " bytes";
        }
    }
}

// --- refusals

TEST(Control, MessageDecodesAsItsOwnTypeOnly) {
    for (const Bytes& whole : one_of_each()) {
        for (const ControlType type : all_types) EXPECT_EQ(decodes(whole, type), type == *control_type(whole));
    }
}

TEST(Control, InconsistentJoinIsRefused) {
    const std::vector<std::function<void(Join&)>> changes = {
        [](Join& join) { join.terms.token = 0; },
        [](Join& join) { join.terms.lanes = 0; },
        [](Join& join) { join.terms.lanes = 1; },  // the audit lane alone
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
        [](Join& join) { join.terms.group.host[0] = std::byte{240}; },  // no group of IPv4; next row: none of IPv6
        [](Join& join) { join.terms.group.family = 6; },
        [](Join& join) { join.level = 3; },
        [](Join& join) { join.units.clear(); },
        [](Join& join) { join.units[0].unit = 3; },   // not a unit of the job
        [](Join& join) { join.units[0].unit = 34; },  // not a unit of any job
        [](Join& join) { join.units[0].mask0 = 0xD; },
        [](Join& join) { join.units[0].mask0 = 0x3; },    // without the member
        [](Join& join) { join.units[0].direct = true; },  // under a rack's switch
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
        EXPECT_FALSE(decode_join(encoded(join)).has_value()) << at;
    }
}

TEST(Control, JoinOfOneWorkerOfARackAtTheRootIsAccepted) {
    Join alone = some_join();
    alone.level = 1;
    const auto read = decode_join(encoded(alone));
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->units, alone.units);
}

TEST(Control, InconsistentJoinOfASwitchIsRefused) {
    Join part = join_of_switch();
    part.units[0].members = 0x3;
    part.units[0].ranks = {0, 5};
    EXPECT_FALSE(decode_join(encoded(part)).has_value()) << "a rack speaks for all of its members";
    Join wide = join_of_switch();
    wide.units[0].direct = true;
    EXPECT_FALSE(decode_join(encoded(wide)).has_value()) << "a direct unit is one worker";
    Join some = join_of_server();
    some.units.pop_back();
    EXPECT_FALSE(decode_join(encoded(some)).has_value()) << "the last switch speaks for all units";
    Join twice = join_of_server();
    twice.units[1].unit = 0;
    EXPECT_FALSE(decode_join(encoded(twice)).has_value()) << "each unit once";
}

TEST(Control, OtherFieldsOutOfRangeAreRefused) {
    EXPECT_FALSE(decode_leave(encoded(Leave{.job = 1, .token = 0})).has_value());
    EXPECT_FALSE(decode_leave(encoded(Leave{.job = 1, .token = 1, .channel = 0, .unit = 32})).has_value());
    EXPECT_FALSE(decode_leave(encoded(Leave{.job = 1, .token = 1, .channel = 0, .unit = 0, .member = 32})).has_value());
    for (const unsigned reason : {0U, 10U, 255U}) {
        const auto wrong = static_cast<Refusal>(reason);
        EXPECT_FALSE(decode_refused(encoded(Refused{.reason = wrong, .text = {}})).has_value());
        EXPECT_EQ(to_string(wrong), "unknown");
    }
    EXPECT_FALSE(decode_report(encoded(Report{.part = 1, .parts = 1, .text = {}})).has_value());
    EXPECT_FALSE(decode_report(encoded(Report{.part = 0, .parts = 0, .text = {}})).has_value());
    Welcome nowhere = some_welcome;
    nowhere.path.clear();
    EXPECT_FALSE(decode_welcome(encoded(nowhere)).has_value());
}

TEST(Control, RandomBytesNeverCrash) {
    Random random(11);
    const std::vector<Bytes> good = one_of_each();
    unsigned accepted = 0;
    for (int round = 0; round < 50'000; ++round) {
        Bytes bytes(random.below(200));
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.bits());
        if (random.chance(0.7)) bytes = good[random.below(static_cast<std::uint32_t>(good.size()))];
        for (std::uint32_t change = random.below(4); change > 0 && !bytes.empty(); --change) {
            bytes[random.below(static_cast<std::uint32_t>(bytes.size()))] = static_cast<std::byte>(random.bits());
        }
        for (const ControlType type : all_types) accepted += decodes(bytes, type) ? 1U : 0U;
    }
    EXPECT_GT(accepted, 1000U) << "some survive their changes";
}

// --- names

TEST(Control, ProtocolsHaveNames) {
    EXPECT_EQ(to_string(ChannelProtocol::atp), "atp");
    EXPECT_EQ(to_string(ChannelProtocol::switchml), "switchml");
    EXPECT_EQ(to_string(ChannelProtocol::switchml_faithful), "switchml-faithful");
    EXPECT_EQ(to_string(ChannelProtocol::switchml_lossless), "switchml-lossless");
    EXPECT_EQ(to_string(ChannelProtocol{}), "unknown");
    EXPECT_EQ(to_string(ChannelProtocol{5}), "unknown");
}

// --- versions

TEST(Control, ControlTypesDifferFromPacketTypes) {
    for (unsigned type = 0; type < 256; ++type) {
        const Bytes bytes{std::byte{control_version}, static_cast<std::byte>(type), std::byte{0}, std::byte{0}};
        EXPECT_EQ(control_type(bytes).has_value(), type >= 16 && type <= 23) << type;
        if (const auto known = control_type(bytes)) {
            EXPECT_NE(to_string(*known), "unknown");
        }
    }
    EXPECT_EQ(to_string(static_cast<ControlType>(24)), "unknown");
    EXPECT_FALSE(control_type(Bytes(3, std::byte{control_version})).has_value());
}

TEST(Control, PacketIsAForeignVersion) {
    Bytes packet = encoded(Hello{.nonce = 1});
    packet[0] = std::byte{ATP_VERSION};
    EXPECT_FALSE(control_type(packet).has_value());
    EXPECT_EQ(foreign_version(packet), ATP_VERSION) << "what messages of version 1 began with";
}

TEST(Control, JoinOrHelloOfAnotherVersionIsAnswered) {
    for (const Bytes& whole : one_of_each()) {
        const ControlType type = *control_type(whole);
        Bytes other = whole;
        other[0] = std::byte{control_version + 1};
        EXPECT_FALSE(decodes(other, type));
        EXPECT_FALSE(control_type(other).has_value());
        const bool asks = type == ControlType::join || type == ControlType::hello;
        EXPECT_EQ(foreign_version(other).has_value(), asks) << to_string(type);
        if (asks) {
            EXPECT_EQ(foreign_version(other), control_version + 1);
        }
        EXPECT_FALSE(foreign_version(whole).has_value()) << "our own is not foreign";
        other[0] = std::byte{0xB1};
        EXPECT_FALSE(foreign_version(other).has_value()) << "another protocol";
        EXPECT_EQ(refusal_version(whole).has_value(), type == ControlType::refused);
    }
    Bytes refused = encoded(Refused{.reason = Refusal::version, .text = "no"});
    refused[0] = std::byte{0xA7};
    EXPECT_EQ(refusal_version(refused), 0xA7);
    refused[0] = std::byte{0x17};
    EXPECT_FALSE(refusal_version(refused).has_value());
    EXPECT_FALSE(refusal_version({}).has_value());
    EXPECT_FALSE(foreign_version({}).has_value());
}

}  // namespace
}  // namespace atp::wire
