// SPDX-License-Identifier: Apache-2.0
// How a server finds gradients that were lost, and whom it asks for them.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "protocol/server.h"
#include "support/server_bench.h"

namespace atp::protocol {
namespace {

using testing::ServerAnswer;
using testing::ServerBench;

ChannelConfig wide_channel() {
    ChannelConfig channel = ServerBench::default_channel();
    channel.window_log2 = 4;
    return channel;
}

// What a switch returns for a FLUSH of its members.
Bytes partial_sum(const ServerBench& bench, std::uint32_t members, std::uint32_t seq, std::int32_t value) {
    atp_header header = testing::gradient_of_members(bench.channel, bench.members, 0, members, seq);
    header.worker = ATP_WORKER_ALL;
    header.flags |= ATP_FLAG_BYPASS;
    return testing::make_packet(header, {value, -value});
}

std::vector<ServerAnswer> answers_of_type(ServerBench& bench, atp_type type) {
    std::vector<ServerAnswer> list;
    for (ServerAnswer& answer : bench.answers()) {
        if (answer.header.type == type) list.push_back(std::move(answer));
    }
    return list;
}

void complete(ServerBench& bench, std::uint32_t seq) { bench.handle(bench.units_gradient(0x1, seq, 3)); }

TEST(ServerRecovery, ThreeNewerFragmentsFetchWhatTheSwitchHoldsOnce) {
    ServerBench bench(*Membership::star(3), wide_channel());
    complete(bench, 1);
    complete(bench, 2);
    EXPECT_TRUE(answers_of_type(bench, ATP_TYPE_FLUSH).empty());
    complete(bench, 3);
    const auto flushes = answers_of_type(bench, ATP_TYPE_FLUSH);
    ASSERT_EQ(flushes.size(), 1U);
    EXPECT_EQ(flushes[0].header.seq, 0U);
    EXPECT_EQ(flushes[0].header.hop, 0);
    EXPECT_EQ(flushes[0].header.bitmap0, 0x7U);
    complete(bench, 4);
    EXPECT_TRUE(answers_of_type(bench, ATP_TYPE_FLUSH).empty());
}

TEST(ServerRecovery, H105_PartialSumOfALostFragmentAsksExactlyTheMissingWorkers) {
    ServerBench bench(*Membership::star(4), wide_channel());
    for (const std::uint32_t seq : {1U, 2U, 3U}) complete(bench, seq);
    (void)bench.answers();
    bench.handle(partial_sum(bench, 0xB, 0, 3));
    const auto nacks = answers_of_type(bench, ATP_TYPE_NACK);
    ASSERT_EQ(nacks.size(), 1U);
    EXPECT_EQ(nacks[0].header.seq, 0U);
    EXPECT_EQ(nacks[0].header.bitmap0, 0x4U);
    bench.handle(bench.gradient(2, 0, 1, ATP_FLAG_RESEND));
    const auto acks = answers_of_type(bench, ATP_TYPE_ACK);
    ASSERT_EQ(acks.size(), 1U);
    EXPECT_EQ(acks[0].sums.at(0), 4.0F);
}

// The FLUSH after the collision found nothing: the other gradients came later, to a free aggregator.
TEST(ServerRecovery, H109_ThreeNewerFragmentsFetchWhatCameAfterTheFlushOfACollision) {
    ServerBench bench(*Membership::star(3), wide_channel());
    bench.handle(bench.gradient(0, 0, 1, ATP_FLAG_BYPASS | ATP_FLAG_COLLISION));
    EXPECT_EQ(answers_of_type(bench, ATP_TYPE_FLUSH).size(), 1U);
    for (const std::uint32_t seq : {1U, 2U, 3U}) complete(bench, seq);
    const auto flushes = answers_of_type(bench, ATP_TYPE_FLUSH);
    ASSERT_EQ(flushes.size(), 1U);
    EXPECT_EQ(flushes[0].header.seq, 0U);
    EXPECT_EQ(flushes[0].header.bitmap0, 0x6U);
    bench.handle(partial_sum(bench, 0x6, 0, 2));
    EXPECT_EQ(answers_of_type(bench, ATP_TYPE_ACK).size(), 1U);
}

TEST(ServerRecovery, H109_OfSeveralUnitsBothLevelsAreAskedAgain) {
    ServerBench bench(*Membership::racks(2, 2), wide_channel());
    bench.handle(bench.gradient(0, 0, 1, ATP_FLAG_BYPASS | ATP_FLAG_COLLISION));
    EXPECT_EQ(answers_of_type(bench, ATP_TYPE_FLUSH).size(), 2U);
    for (const std::uint32_t seq : {1U, 2U, 3U}) bench.handle(bench.units_gradient(0x3, seq, 4));
    std::vector<unsigned> hops;
    for (const ServerAnswer& flush : answers_of_type(bench, ATP_TYPE_FLUSH)) hops.push_back(flush.header.hop);
    EXPECT_EQ(hops, (std::vector<unsigned>{1, 0, 0}));
}

TEST(ServerRecovery, FragmentWithoutNewerOnesIsNotLost) {
    ServerBench bench(*Membership::star(3), wide_channel());
    bench.handle(partial_sum(bench, 0x3, 0, 2));
    EXPECT_TRUE(answers_of_type(bench, ATP_TYPE_NACK).empty());
}

Bytes scaled(Bytes bytes, std::uint8_t scale) {
    atp_header header = testing::header_in(bytes);
    header.scale = scale;
    header.argument = 0x7700U;
    wire::encode_header(header, bytes);
    return bytes;
}

// A switch does not keep the scale, and a neighbour with the same argument may have another one.
TEST(ServerRecovery, WorkerThatSendsAgainTellsTheScaleOfTheSum) {
    ServerBench bench(*Membership::star(3), wide_channel());
    for (const std::uint32_t seq : {1U, 2U, 3U}) bench.handle(scaled(bench.units_gradient(0x1, seq, 6), scale_byte(3)));
    (void)bench.answers();
    bench.handle(scaled(partial_sum(bench, 0x3, 0, 4), scale_of_job));
    EXPECT_EQ(answers_of_type(bench, ATP_TYPE_NACK).size(), 1U);
    bench.handle(scaled(bench.gradient(2, 0, 2, ATP_FLAG_RESEND), scale_byte(1)));
    const auto acks = answers_of_type(bench, ATP_TYPE_ACK);
    ASSERT_EQ(acks.size(), 1U);
    EXPECT_EQ(acks[0].sums.at(0), 3.0F) << "(4 + 2) / 2";
    EXPECT_EQ(bench.server.counters().mismatched, 0U);
}

TEST(ServerRecovery, OfASumThatLacksNobodyOneWorkerTellsTheScale) {
    ServerBench bench(*Membership::star(3), wide_channel());
    for (const std::uint32_t seq : {1U, 2U, 3U}) complete(bench, seq);
    (void)bench.answers();
    bench.handle(scaled(partial_sum(bench, 0x7, 0, 6), scale_of_job));
    const auto answers = bench.answers();
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].header.type, ATP_TYPE_NACK);
    EXPECT_EQ(answers[0].header.bitmap0, 0x1U);
    bench.handle(bench.probe(1, 0));
    EXPECT_EQ(answers_of_type(bench, ATP_TYPE_NACK).size(), 1U) << "any worker can tell it";
    bench.handle(scaled(bench.gradient(1, 0, 2, ATP_FLAG_RESEND), scale_byte(1)));
    const auto acks = answers_of_type(bench, ATP_TYPE_ACK);
    ASSERT_EQ(acks.size(), 1U);
    EXPECT_EQ(acks[0].sums.at(0), 3.0F) << "6 / 2";
    EXPECT_EQ(bench.server.counters().completed, 4U);
}

// The FLUSH left before the server knew a scale, and a gradient that passed the switch came first.
TEST(ServerRecovery, PartialSumHasTheScaleOfAGradientThatCameBeforeIt) {
    ServerBench bench(*Membership::star(3), wide_channel());
    for (const std::uint32_t seq : {1U, 2U, 3U}) complete(bench, seq);
    (void)bench.answers();
    bench.handle(scaled(bench.gradient(2, 0, 2, ATP_FLAG_BYPASS), scale_byte(1)));
    bench.handle(scaled(partial_sum(bench, 0x3, 0, 4), scale_of_job));
    const auto acks = answers_of_type(bench, ATP_TYPE_ACK);
    ASSERT_EQ(acks.size(), 1U);
    EXPECT_EQ(acks[0].sums.at(0), 3.0F) << "(4 + 2) / 2";
    EXPECT_EQ(bench.server.counters().mismatched, 0U);
}

// The FLUSH left before a gradient told that the fragment has an owner, so the sum does not name it.
TEST(ServerRecovery, PartialSumWithoutTheOwnerIsDroppedAndItsMembersSendAgain) {
    ServerBench bench(*Membership::star(3), wide_channel());
    for (const std::uint32_t seq : {1U, 2U, 3U}) complete(bench, seq);
    (void)bench.answers();
    Bytes owned = bench.gradient(2, 0, 2, ATP_FLAG_BYPASS);
    atp_header header = testing::header_in(owned);
    header.peer = 1;
    wire::encode_header(header, owned);
    bench.handle(owned);
    (void)bench.answers();
    bench.handle(partial_sum(bench, 0x3, 0, 4));
    const auto nacks = answers_of_type(bench, ATP_TYPE_NACK);
    ASSERT_EQ(nacks.size(), 1U);
    EXPECT_EQ(nacks[0].header.bitmap0, 0x3U);
    EXPECT_EQ(bench.server.counters().mismatched, 0U);
}

TEST(ServerRecovery, OfRacksTheSumsOfLevelOneComeFirst) {
    ServerBench bench(*Membership::racks(2, 2), wide_channel());
    for (const std::uint32_t seq : {1U, 2U, 3U}) bench.handle(bench.units_gradient(0x3, seq, 4));
    auto flushes = answers_of_type(bench, ATP_TYPE_FLUSH);
    ASSERT_EQ(flushes.size(), 1U);
    EXPECT_EQ(flushes[0].header.hop, 1);
    atp_header header = testing::gradient_of_units(bench.channel, bench.members, 0x1, 0);
    header.worker = ATP_WORKER_ALL;
    header.flags |= ATP_FLAG_BYPASS;
    bench.handle(testing::make_packet(header, {2, -2}));
    flushes = answers_of_type(bench, ATP_TYPE_FLUSH);
    ASSERT_EQ(flushes.size(), 1U);
    EXPECT_EQ(flushes[0].header.hop, 0);
    EXPECT_EQ(flushes[0].transmit.units, 0x2U);
}

TEST(ServerRecovery, ProbeOfAWorkerWhoseGradientWasLostIsAnsweredAtOnce) {
    ServerBench bench(*Membership::star(3), wide_channel());
    for (const std::uint32_t seq : {1U, 2U, 3U}) complete(bench, seq);
    (void)bench.answers();
    bench.handle(bench.probe(1, 0));
    const auto nacks = answers_of_type(bench, ATP_TYPE_NACK);
    ASSERT_EQ(nacks.size(), 1U) << "no other worker has to send first";
    EXPECT_EQ(nacks[0].header.bitmap0, 0x2U);
}

}  // namespace
}  // namespace atp::protocol
