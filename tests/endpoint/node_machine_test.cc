// SPDX-License-Identifier: Apache-2.0
#include "endpoint/node_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/control_messages.h"
#include "support/recording_outbox.h"

namespace atp::endpoint {
namespace {

using testing::encoded;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RecordingOutbox;
using Bytes = std::vector<std::byte>;
using Kind = NodeTask::Kind;
using std::chrono::milliseconds;

wire::Address host(unsigned number) { return *wire::Address::parse("10.0.0." + std::to_string(number) + ":4790"); }

struct Node {
    explicit Node(std::uint32_t shards = 1, const control::HelloClient* parent = nullptr)
        : machine({.id = 77,
                   .self = {.aggregators = 1000, .lanes = 352},
                   .parent = host(9),
                   .software = "atp 1.2.3",
                   .shards = shards,
                   .secret = {3, 4}}) {
        if (parent != nullptr) machine.set_parent(*parent);
    }

    NodeTask take(const Bytes& bytes, wire::Ecn ecn = wire::Ecn::capable_0) { return take_from(host(5), bytes, ecn); }
    NodeTask take_from(const wire::Address& from, const Bytes& bytes, wire::Ecn ecn = wire::Ecn::not_capable) {
        const NodeTask task =
            machine.handle_message({.from = from, .ecn = ecn, .bytes = bytes, .length = bytes.size()}, outbox, now);
        sent = outbox.flush();
        return task;
    }
    // With the cookie of the address.
    NodeTask ask(wire::Stats stats, const wire::Address& from = host(5)) {
        stats.cookie = machine.gatekeeper().cookie_of(control::Gatekeeper::Question::stats, from, now);
        return take_from(from, encoded(stats));
    }
    void report(const std::string& text) {
        machine.handle_report(text, outbox, now);
        sent = outbox.flush();
    }
    // A whole report, 100 ms after the one before; returns its number.
    std::uint32_t reported(const std::string& text) {
        now += milliseconds(100);
        EXPECT_EQ(ask({.nonce = ++nonce}).kind, Kind::take_report);
        report(text);
        return wire::decode<wire::Report>(sent.at(0).bytes)->snapshot;
    }

    NodeMachine machine;
    RecordingOutbox outbox;
    std::vector<RecordingOutbox::Packet> sent;
    Time now{std::chrono::seconds(1000)};
    std::uint64_t nonce = 1000;
};

// A client of a parent that has answered.
control::HelloClient answered_parent() {
    control::HelloClient client({.peer = host(9), .first_nonce = 1});
    client.begin({}, Time{});
    Bytes buffer(client.next_bytes());
    static_cast<void>(client.poll_transmit(buffer, Time{}));
    const wire::Welcome welcome{.nonce = 1, .path = {{.id = 78}, {.id = 79}}, .software = "atp"};
    static_cast<void>(client.handle_message(encoded(welcome), host(9), Time{}));
    return client;
}

TEST(NodeMachine, HelloGetsAWelcomeOfTheSameLengthWithTheSameEcnBits) {
    Node node;
    const NodeTask task = node.take(encoded(wire::Hello{.nonce = 5}, std::size_t{1400}), wire::Ecn::congested);
    EXPECT_EQ(task.kind, Kind::none);
    ASSERT_EQ(node.sent.size(), 1U);
    EXPECT_EQ(node.sent[0].to, host(5));
    EXPECT_EQ(node.sent[0].ecn, wire::Ecn::congested);
    EXPECT_EQ(node.sent[0].bytes.size(), 1400U);
    const auto welcome = wire::decode<wire::Welcome>(node.sent[0].bytes);
    ASSERT_TRUE(welcome);
    EXPECT_EQ(welcome->nonce, 5U);
    EXPECT_EQ(welcome->received_bytes, 1400U);
    EXPECT_EQ(welcome->software, "atp 1.2.3");
    EXPECT_EQ(welcome->path, (std::vector<wire::PathSwitch>{{.id = 77, .aggregators = 1000, .lanes = 352}}));
    EXPECT_EQ(node.machine.counters().answered, 1U);
}

TEST(NodeMachine, WelcomeContinuesWithThePathOfTheParent) {
    const control::HelloClient parent = answered_parent();
    Node node(1, &parent);
    EXPECT_TRUE(node.machine.parent_answers());
    node.take(encoded(wire::Hello{.nonce = 5}, std::size_t{200}));
    const auto welcome = wire::decode<wire::Welcome>(node.sent.at(0).bytes);
    ASSERT_TRUE(welcome);
    ASSERT_EQ(welcome->path.size(), 3U);
    EXPECT_EQ(welcome->path[1].id, 78U);
    EXPECT_EQ(welcome->path[2].id, 79U);
}

TEST(NodeMachine, HelloIsRefusedWhileTheParentDoesNotAnswer) {
    const control::HelloClient parent({.peer = host(9)});
    Node node(1, &parent);
    EXPECT_FALSE(node.machine.parent_answers());
    node.take(encoded(wire::Hello{.nonce = 5}, std::size_t{200}));
    const auto refused = wire::decode<wire::Refused>(node.sent.at(0).bytes);
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->reason, wire::Refusal::parent);
    EXPECT_THAT(refused->text, HasSubstr("10.0.0.9:4790"));
}

TEST(NodeMachine, H87_OtherVersionIsRefusedWithBothVersions) {
    Node node;
    Bytes hello = encoded(wire::Hello{.nonce = 5}, std::size_t{200});
    hello[0] = std::byte{(wire::control_version & 0xF0U) | 0x0EU};
    EXPECT_EQ(node.take(hello).kind, Kind::none);
    const auto refused = wire::decode<wire::Refused>(node.sent.at(0).bytes);
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->reason, wire::Refusal::version);
    EXPECT_THAT(refused->text, HasSubstr("the sender version 14"));
}

TEST(NodeMachine, RefusalOfAShortQuestionHasNoTextAndAmplifiesNothing) {
    Node node;
    Bytes hello = encoded(wire::Hello{.nonce = 5}, wire::least_question_bytes);
    hello[0] = std::byte{(wire::control_version & 0xF0U) | 0x0EU};
    hello.resize(40);
    node.take(hello);
    ASSERT_EQ(node.sent.size(), 1U);
    EXPECT_LE(node.sent[0].bytes.size(), hello.size());
    EXPECT_EQ(wire::decode<wire::Refused>(node.sent[0].bytes)->text, "");
    hello.resize(wire::control_prefix_bytes);
    node.take(hello);
    EXPECT_THAT(node.sent, IsEmpty()) << "even the short refusal is too long for this";
    EXPECT_EQ(node.machine.counters().too_long, 1U);
}

// Whatever it was sent from, the question makes no report and leaves nothing.
TEST(NodeMachine, StatsOfAnUnprovenAddressGetsACookieAndNoReport) {
    Node node;
    EXPECT_EQ(node.take(encoded(wire::Stats{.nonce = 9})).kind, Kind::none);
    const auto retry = wire::decode<wire::Retry>(node.sent.at(0).bytes);
    ASSERT_TRUE(retry);
    EXPECT_EQ(retry->nonce, 9U);
    EXPECT_EQ(retry->job, 0U);
    EXPECT_EQ(retry->token, 0U);
    EXPECT_EQ(retry->channel, 0U);
    EXPECT_EQ(node.machine.poll_timeout(), never);
    const Bytes proven = encoded(wire::Stats{.nonce = 9, .cookie = retry->cookie});
    EXPECT_EQ(node.take_from(host(6), proven).kind, Kind::none) << "the cookie of another address";
    EXPECT_EQ(node.take(proven).kind, Kind::take_report);
    EXPECT_THAT(node.sent, IsEmpty());
}

TEST(NodeMachine, CookieOfAJoinReadsNoReport) {
    Node node;
    const std::uint64_t of_join =
        node.machine.gatekeeper().cookie_of(control::Gatekeeper::Question::join, host(5), node.now);
    EXPECT_EQ(node.take(encoded(wire::Stats{.nonce = 9, .cookie = of_join})).kind, Kind::none);
}

TEST(NodeMachine, AllWhoAskWithin100MsShareAReport) {
    Node node;
    ASSERT_EQ(node.ask({.nonce = 1}).kind, Kind::take_report);
    node.report("first");
    int taken = 0;
    for (unsigned asker = 10; asker < 60; ++asker) {
        node.now += milliseconds(1);
        if (node.ask({.nonce = asker}, host(asker)).kind == Kind::take_report) ++taken;
        EXPECT_THAT(node.sent, IsEmpty()) << "the report must describe a moment after the question";
    }
    EXPECT_EQ(taken, 0);
    EXPECT_EQ(node.machine.poll_timeout() - node.now, milliseconds(50));
    node.now += milliseconds(50);
    ASSERT_EQ(node.machine.handle_timeout(node.now).kind, Kind::take_report);
    EXPECT_EQ(node.machine.poll_timeout(), never) << "while it is made";
    node.report("second");
    ASSERT_EQ(node.sent.size(), 50U);
    for (unsigned asker = 10; asker < 60; ++asker) {
        EXPECT_EQ(node.sent[asker - 10].to, host(asker));
        EXPECT_EQ(wire::decode<wire::Report>(node.sent[asker - 10].bytes)->text, "second");
    }
}

TEST(NodeMachine, QuestionDuringTheMakingOfAReportGetsTheNextOne) {
    Node node;
    ASSERT_EQ(node.ask({.nonce = 1}).kind, Kind::take_report);
    EXPECT_EQ(node.ask({.nonce = 2}, host(6)).kind, Kind::none);
    EXPECT_EQ(node.ask({.nonce = 1}).kind, Kind::none) << "a repeated question waits once";
    node.report("first");
    ASSERT_EQ(node.sent.size(), 1U);
    EXPECT_EQ(node.sent[0].to, host(5));
    node.now = node.machine.poll_timeout();
    ASSERT_EQ(node.machine.handle_timeout(node.now).kind, Kind::take_report);
    node.report("second");
    ASSERT_EQ(node.sent.size(), 1U);
    EXPECT_EQ(node.sent[0].to, host(6));
}

TEST(NodeMachine, QuestionsBeyondTheBoundAreDroppedAndCounted) {
    Node node;
    for (unsigned asker = 1; asker <= 65; ++asker) static_cast<void>(node.ask({.nonce = asker}, host(asker)));
    EXPECT_EQ(node.machine.counters().ignored, 1U);
}

TEST(NodeMachine, ReportIsCutIntoPartsOfOneMoment) {
    Node node;
    std::string text(2500, 'a');
    text.back() = 'z';
    EXPECT_EQ(node.ask({.nonce = 9}).kind, Kind::take_report);
    EXPECT_THAT(node.sent, IsEmpty());
    node.report(text);
    const auto first = wire::decode<wire::Report>(node.sent.at(0).bytes);
    ASSERT_TRUE(first);
    EXPECT_EQ(first->nonce, 9U);
    EXPECT_EQ(first->parts, 3U);
    std::string read = first->text;
    for (std::uint16_t part = 1; part < 3; ++part) {
        const wire::Stats stats{.nonce = 10U + part, .snapshot = first->snapshot, .part = part};
        EXPECT_EQ(node.ask(stats).kind, Kind::none) << "the kept report answers";
        const auto next = wire::decode<wire::Report>(node.sent.at(0).bytes);
        EXPECT_EQ(next->nonce, 10U + part);
        read += next->text;
    }
    EXPECT_EQ(read, text);
    static_cast<void>(node.ask({.nonce = 9, .snapshot = first->snapshot, .part = 3}));
    EXPECT_THAT(node.sent, IsEmpty()) << "there is no such part";
}

TEST(NodeMachine, QuestionsOfOthersReplaceNoReportForThreeSeconds) {
    Node node;
    const std::uint32_t first = node.reported("mine");
    for (int i = 0; i < 30; ++i) static_cast<void>(node.reported("of another"));
    static_cast<void>(node.ask({.nonce = 1, .snapshot = first}));
    EXPECT_EQ(wire::decode<wire::Report>(node.sent.at(0).bytes)->text, "mine");
    static_cast<void>(node.reported("of another"));
    static_cast<void>(node.ask({.nonce = 1, .snapshot = first}));
    EXPECT_THAT(node.sent, IsEmpty());
    EXPECT_EQ(node.machine.counters().ignored, 1U);
}

TEST(NodeMachine, NewestReportAnswersWhileKeptOnesFillTheRoom) {
    Node node;
    const std::string large(KeptReports::most_bytes / 4, 'x');
    std::uint32_t newest = 0;
    for (int i = 0; i < 4; ++i) newest = node.reported(large);
    node.now += milliseconds(100);
    EXPECT_EQ(node.ask({.nonce = 7}).kind, Kind::none);
    EXPECT_EQ(wire::decode<wire::Report>(node.sent.at(0).bytes)->snapshot, newest);
    node.now += KeptReports::kept_for;
    EXPECT_EQ(node.ask({.nonce = 8}).kind, Kind::take_report);
}

TEST(NodeMachine, ReportThatWasNotRequestedIsNotSent) {
    Node node;
    node.report("text");
    EXPECT_THAT(node.sent, IsEmpty());
}

TEST(NodeMachine, MessagesOfAChannelGoToOneShard) {
    Node node(4);
    const wire::Join join = testing::join_of_worker();
    const NodeTask first = node.take(encoded(join));
    EXPECT_EQ(first.kind, Kind::deliver);
    EXPECT_LT(first.shard, 4U);
    const wire::ChannelTerms& terms = join.terms;
    const std::vector<Bytes> others = {
        encoded(wire::Leave{.job = terms.job, .token = terms.token, .channel = terms.channel}),
        encoded(wire::Joined{.job = terms.job, .token = terms.token, .channel = terms.channel}),
        encoded(wire::Refused{.job = terms.job, .token = terms.token, .channel = terms.channel, .text = "no"})};
    for (const Bytes& message : others) {
        const NodeTask task = node.take(message);
        EXPECT_EQ(task.kind, Kind::deliver);
        EXPECT_EQ(task.shard, first.shard);
    }
    EXPECT_THAT(node.sent, IsEmpty());
}

TEST(NodeMachine, ChannelsOfAJobSpreadOverTheShards) {
    Node node(4);
    std::vector<unsigned> channels_of_shard(4);
    for (std::uint16_t channel = 0; channel < 64; ++channel) {
        ++channels_of_shard[node.take(encoded(wire::Leave{.job = 7, .token = 1, .channel = channel})).shard];
    }
    EXPECT_THAT(channels_of_shard, ::testing::Each(::testing::Gt(4U)));
}

TEST(NodeMachine, OtherBytesAreIgnored) {
    Node node;
    std::vector<Bytes> others = {{}, encoded(wire::Welcome{.path = {{}}, .software = "x"})};
    for (Bytes message : {encoded(wire::Hello{.nonce = 5}, wire::least_question_bytes),
                          encoded(wire::Stats{.nonce = 5}), encoded(testing::join_of_worker())}) {
        message.resize(wire::control_prefix_bytes);
        others.push_back(message);
    }
    for (const Bytes& message : others) {
        EXPECT_EQ(node.take(message).kind, Kind::none);
        EXPECT_THAT(node.sent, IsEmpty());
    }
    EXPECT_EQ(node.machine.counters().ignored, others.size());
}

TEST(NodeMachine, AnswerWithoutRoomIsCounted) {
    Node node;
    node.outbox.room = 0;
    node.take(encoded(wire::Hello{.nonce = 5}, std::size_t{200}));
    EXPECT_EQ(node.machine.counters().no_room, 1U);
    EXPECT_EQ(node.machine.counters().answered, 0U);
}

// No switch should be a mirror for packets that no link but loopback carries whole.
// A question of 65,507 bytes must not take that much memory while it waits.
TEST(NodeMachine, PaddingOfAQuestionIsANumber) {
    Node node;
    ControlMessage hello{.from = host(5), .bytes = encoded(wire::Hello{.nonce = 5}), .length = 1400};
    static_cast<void>(node.machine.handle_message(hello, node.outbox, node.now));
    node.sent = node.outbox.flush();
    EXPECT_EQ(node.sent.at(0).bytes.size(), 1400U);
    EXPECT_EQ(wire::decode<wire::Welcome>(node.sent[0].bytes)->received_bytes, 1400U);
}

// The flood of one host costs the thread a bounded time, and takes no answers from others.
TEST(NodeMachine, H72_FloodOfOneHostLeavesOthersTheirAnswers) {
    Node node;
    const Bytes hello = encoded(wire::Hello{.nonce = 5}, wire::least_question_bytes);
    std::size_t flooder = 0;
    std::size_t other = 0;
    for (int i = 0; i < 100'000; ++i) {  // in a second
        node.now += std::chrono::microseconds(10);
        static_cast<void>(node.take_from(host(66), hello));
        flooder += node.sent.size();
        if (i % 1000 != 0) continue;
        static_cast<void>(node.take_from(host(7), hello));
        other += node.sent.size();
    }
    EXPECT_EQ(other, 100U);
    EXPECT_LT(flooder, 25'000U);
    EXPECT_EQ(node.machine.counters().limited, 100'000U - flooder);
}

TEST(NodeMachine, WelcomeHasAtMost9000Bytes) {
    Node node;
    node.take(encoded(wire::Hello{.nonce = 5}, std::size_t{9000}));
    EXPECT_EQ(node.sent.at(0).bytes.size(), 9000U);
    node.take(encoded(wire::Hello{.nonce = 5}, std::size_t{60'000}));
    EXPECT_EQ(node.sent.at(0).bytes.size(), 9000U);
    EXPECT_EQ(wire::decode<wire::Welcome>(node.sent[0].bytes)->received_bytes, 60'000U);
}

}  // namespace
}  // namespace atp::endpoint
