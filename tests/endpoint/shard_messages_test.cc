// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shard_fixture.h"

namespace atp::endpoint {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

const protocol::Membership two = *protocol::Membership::star(2);

wire::Join join_of_rank(std::uint16_t rank) { return join_of(two.place(rank), rank); }
wire::Leave leave_of_rank(std::uint8_t rank) {
    return {.job = job, .token = token, .channel = channel, .unit = 0, .member = rank};
}

TEST(ShardMessages, ControlMessagesPassThroughTheDriver) {
    ShardMachineConfig config = shard_config();
    config.passes_messages = true;
    Shard shard(config);
    const Bytes join = shard.stamped(encoded(join_of_rank(0)), worker_address(0), {});
    shard.take(join, worker_address(0), {}, wire::Ecn::congested);
    ASSERT_THAT(shard.events, SizeIs(1));
    EXPECT_EQ(shard.events[0].kind, ShardEvent::Kind::message);
    EXPECT_EQ(shard.events[0].message.from, worker_address(0));
    EXPECT_EQ(shard.events[0].message.bytes, join);
    EXPECT_EQ(shard.events[0].message.length, join.size());
    EXPECT_EQ(shard.events[0].message.ecn, wire::Ecn::congested);
    EXPECT_EQ(shard.machine.tree().channels(), 0U);
    Bytes foreign = encoded(wire::Hello{.nonce = 1}, wire::least_question_bytes);
    foreign[0] = std::byte{(wire::control_version & 0xF0U) | 0x0EU};
    shard.take(foreign, worker_address(0));
    EXPECT_THAT(shard.events, SizeIs(2)) << "the node refuses the version";
    shard.message(join, worker_address(0));
    EXPECT_EQ(shard.machine.tree().channels(), 1U) << "the node passed it back";
}

// 1,024 messages of 64 KiB would be 64 MiB.
TEST(ShardMessages, PassedMessageHasItsPaddingAsANumber) {
    ShardMachineConfig config = shard_config();
    config.passes_messages = true;
    Shard shard(config);
    shard.take(encoded(wire::Hello{.nonce = 1}, std::size_t{60'000}), worker_address(0));
    ASSERT_THAT(shard.events, SizeIs(1));
    EXPECT_EQ(shard.events[0].message.length, 60'000U);
    EXPECT_LE(shard.events[0].message.bytes.size(), wire::longest_message_bytes + wire::longest_code_bytes);
}

TEST(ShardMessages, JoinWithoutTheCookieIsAnsweredAndPassedToNobody) {
    ShardMachineConfig config = shard_config();
    config.passes_messages = true;
    Shard shard(config);
    wire::Join join = join_of_rank(0);
    join.epoch = 1;
    shard.take(encoded(join, wire::least_question_bytes), worker_address(0));
    EXPECT_THAT(shard.events, IsEmpty());
    EXPECT_TRUE(shard.last<wire::Retry>(wire::decode<wire::Retry>, worker_address(0)));
}

TEST(ShardMessages, H72_FloodOfJoinsWithoutCookiesGetsABoundedNumberOfAnswers) {
    Shard shard;
    wire::Join join = join_of_rank(0);
    join.epoch = 1;
    const Bytes bytes = encoded(join, wire::least_question_bytes);
    Time now{std::chrono::seconds(1000)};
    std::size_t answers = 0;
    for (unsigned i = 0; i < 50'000; ++i) {  // in half a second, each from another host
        now += std::chrono::microseconds(10);
        shard.take(bytes,
                   *wire::Address::parse(fmt::format("10.{}.{}.{}:4791", 1 + i / 65'536, i / 256 % 256, i % 256)), now);
        answers += shard.sent.size();
    }
    EXPECT_GT(answers, 10'000U);
    EXPECT_LT(answers, 20'000U);
    EXPECT_EQ(shard.machine.limit().dropped(), 50'000U - answers);
}

TEST(ShardMessages, MessagesAreClassedByWhatTheirSenderKnows) {
    Shard shard;
    shard.take(encoded(join_of_rank(0)), worker_address(0));
    const auto class_of = [&](const Bytes& bytes, const wire::Address& from) {
        return shard.machine.class_of({.from = from, .bytes = bytes, .length = bytes.size()});
    };
    const Bytes join = encoded(join_of_rank(0), wire::least_question_bytes);
    const Bytes leave = encoded(leave_of_rank(0));
    EXPECT_EQ(class_of(join, worker_address(0)), ControlClass::neighbours);
    EXPECT_EQ(class_of(leave, worker_address(0)), ControlClass::neighbours);
    EXPECT_EQ(class_of(join, worker_address(1)), ControlClass::newcomers);
    EXPECT_EQ(class_of(leave, worker_address(1)), ControlClass::strangers);
    wire::Leave of_another_token = leave_of_rank(0);
    ++of_another_token.token;
    EXPECT_EQ(class_of(encoded(of_another_token), worker_address(0)), ControlClass::strangers);
    EXPECT_EQ(class_of({}, worker_address(0)), ControlClass::strangers);
}

TEST(ShardMessages, MessagesOfTheParentsHostAreThoseOfANeighbour) {
    Shard shard(shard_config(host(9)));
    wire::Join join = join_of_rank(0);
    join.terms.mask1 = 3;
    shard.take(encoded(join), worker_address(0));
    const Bytes joined = encoded(wire::Joined{.job = job, .token = token, .channel = channel});
    const auto class_of = [&](const wire::Address& from) {
        return shard.machine.class_of({.from = from, .bytes = joined, .length = joined.size()});
    };
    EXPECT_EQ(class_of(host(9).with_port(9999)), ControlClass::neighbours);
    EXPECT_EQ(class_of(host(8)), ControlClass::strangers);
}

}  // namespace
}  // namespace atp::endpoint
