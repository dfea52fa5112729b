// SPDX-License-Identifier: Apache-2.0
#include "endpoint/node_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/byte_archive.h"
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

wire::Address host(unsigned number) { return *wire::Address::parse("10.0.0." + std::to_string(number) + ":4790"); }

struct Node {
    explicit Node(std::uint32_t shards = 1, const control::HelloClient* parent = nullptr)
        : machine({.id = 77,
                   .self = {.aggregators = 1000, .lanes = 352},
                   .parent = host(9),
                   .software = "atp 1.2.3",
                   .shards = shards}) {
        if (parent != nullptr) machine.set_parent(*parent);
    }

    NodeTask take(const Bytes& bytes, wire::Ecn ecn = wire::Ecn::capable_0) {
        const NodeTask task = machine.handle_message(bytes, host(5), ecn, outbox);
        sent = outbox.flush();
        return task;
    }
    void report(const std::string& text) {
        machine.handle_report(text, outbox);
        sent = outbox.flush();
    }

    NodeMachine machine;
    RecordingOutbox outbox;
    std::vector<RecordingOutbox::Packet> sent;
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

TEST(NodeMachine, ReportIsCutIntoPartsOfOneMoment) {
    Node node;
    std::string text(2500, 'a');
    text.back() = 'z';
    EXPECT_EQ(node.take(encoded(wire::Stats{.nonce = 9})).kind, Kind::take_report);
    EXPECT_THAT(node.sent, IsEmpty());
    node.report(text);
    const auto first = wire::decode<wire::Report>(node.sent.at(0).bytes);
    ASSERT_TRUE(first);
    EXPECT_EQ(first->nonce, 9U);
    EXPECT_EQ(first->parts, 3U);
    std::string read = first->text;
    for (std::uint16_t part = 1; part < 3; ++part) {
        const wire::Stats stats{.nonce = 10U + part, .snapshot = first->snapshot, .part = part};
        EXPECT_EQ(node.take(encoded(stats)).kind, Kind::none) << "the kept report answers";
        const auto next = wire::decode<wire::Report>(node.sent.at(0).bytes);
        EXPECT_EQ(next->nonce, 10U + part);
        read += next->text;
    }
    EXPECT_EQ(read, text);
    node.take(encoded(wire::Stats{.nonce = 9, .snapshot = first->snapshot, .part = 3}));
    EXPECT_THAT(node.sent, IsEmpty()) << "there is no such part";
}

TEST(NodeMachine, NinthReportReplacesTheFirst) {
    Node node;
    std::vector<std::uint32_t> numbers;
    for (int i = 0; i < 9; ++i) {
        ASSERT_EQ(node.take(encoded(wire::Stats{.nonce = 9})).kind, Kind::take_report);
        node.report("report " + std::to_string(i));
        numbers.push_back(wire::decode<wire::Report>(node.sent.at(0).bytes)->snapshot);
    }
    node.take(encoded(wire::Stats{.nonce = 1, .snapshot = numbers[0]}));
    EXPECT_THAT(node.sent, IsEmpty());
    node.take(encoded(wire::Stats{.nonce = 1, .snapshot = numbers[1]}));
    EXPECT_EQ(wire::decode<wire::Report>(node.sent.at(0).bytes)->text, "report 1");
    EXPECT_EQ(node.machine.counters().ignored, 1U);
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

TEST(NodeMachine, LoadedStateHasTheKeptReports) {
    Node saved;
    static_cast<void>(saved.take(encoded(wire::Stats{.nonce = 9})));
    saved.report("kept");
    const std::uint32_t number = wire::decode<wire::Report>(saved.sent.at(0).bytes)->snapshot;
    Node loaded;
    ASSERT_TRUE(testing::copy_state(saved.machine, loaded.machine));
    loaded.take(encoded(wire::Stats{.nonce = 1, .snapshot = number}));
    EXPECT_EQ(wire::decode<wire::Report>(loaded.sent.at(0).bytes)->text, "kept");
    EXPECT_EQ(loaded.machine.counters().answered, 2U);
    static_cast<void>(loaded.take(encoded(wire::Stats{.nonce = 9})));
    loaded.report("next");
    EXPECT_EQ(wire::decode<wire::Report>(loaded.sent.at(0).bytes)->snapshot, number + 1);
}

}  // namespace
}  // namespace atp::endpoint
