// SPDX-License-Identifier: Apache-2.0
// Guarantees of the parameter server, one per test. server_merge_test.cc tests which packets can be merged.
#include "protocol/server.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <set>
#include <vector>

#include "support/random.h"
#include "support/server_bench.h"

namespace atp::protocol {
namespace {

using testing::Bytes;
using testing::Random;
using testing::ServerAnswer;
using testing::ServerBench;
using Sums = std::vector<float>;

class ServerTest : public ::testing::Test {
  protected:
    ServerBench bench{*Membership::star(3)};

    void expect_one(atp_type type, std::uint16_t worker) {
        const auto answers = bench.answers();
        ASSERT_EQ(answers.size(), 1U);
        EXPECT_EQ(wire::type_to_string(answers[0].header.type), wire::type_to_string(type));
        EXPECT_EQ(answers[0].header.worker, worker);
    }
};

// --- completion

TEST_F(ServerTest, LastGradientCausesOneAckToAll) {
    bench.handle(bench.gradient(0, 0, 1));
    bench.handle(bench.gradient(1, 0, 20));
    EXPECT_FALSE(bench.server.has_transmit());
    bench.handle(bench.gradient(2, 0, 300));
    const auto answers = bench.answers();
    ASSERT_EQ(answers.size(), 1U);
    const atp_header& ack = answers[0].header;
    EXPECT_EQ(ack.type, ATP_TYPE_ACK);
    EXPECT_EQ(ack.lanes, ATP_FLOAT32_LANES);
    EXPECT_EQ(ack.worker, ATP_WORKER_ALL);
    EXPECT_EQ(ack.seq, 0U);
    EXPECT_EQ(ack.bitmap1, 0x1U);
    EXPECT_EQ(ack.token, 0x5eedU);
    EXPECT_EQ(answers[0].transmit.worker, ATP_WORKER_ALL);
    EXPECT_EQ(answers[0].transmit.units, 0x1U);
    EXPECT_EQ(answers[0].sums, (Sums{321, -321}));
    EXPECT_EQ(bench.server.base(), 1U);
}

TEST_F(ServerTest, SumOfAllWorkersFromTheSwitchIsTheResult) {
    bench.handle(bench.members_gradient(0, 0x7, 0, 321));
    EXPECT_EQ(bench.answers().at(0).sums, (Sums{321, -321}));
    EXPECT_EQ(bench.server.counters().added_here, 0U);
}

TEST_F(ServerTest, PartialSumAndTheGradientOfOneWorkerAreAdded) {
    bench.handle(bench.members_gradient(0, 0x5, 0, 21));
    bench.handle(bench.gradient(1, 0, 300, ATP_FLAG_BYPASS));
    EXPECT_EQ(bench.answers().at(0).sums, (Sums{321, -321}));
    EXPECT_EQ(bench.server.counters().added_here, 1U);
}

TEST_F(ServerTest, FragmentsMayCompleteInAnyOrderWithinTheWindow) {
    for (const std::uint32_t seq : {3U, 1U, 2U}) bench.complete(seq);
    EXPECT_EQ(bench.server.base(), 0U);
    bench.complete(0);
    EXPECT_EQ(bench.server.base(), 4U);
    EXPECT_EQ(bench.server.counters().completed, 4U);
}

TEST_F(ServerTest, SumsBeyond32BitsAreExact) {
    constexpr std::int32_t most = 0x7fffff00;
    for (std::uint16_t rank = 0; rank < 3; ++rank) bench.handle(bench.gradient(rank, 0, most));
    const float expected = static_cast<float>(3.0 * most);
    EXPECT_EQ(bench.answers().at(0).sums, (Sums{expected, -expected}));
}

TEST_F(ServerTest, CongestionOfAnyGradientReturnsWithTheAck) {
    bench.handle(bench.gradient(0, 0, 1, ATP_FLAG_ECN));
    bench.handle(bench.gradient(1, 0, 1));
    bench.handle(bench.gradient(2, 0, 1));
    EXPECT_NE(bench.answers().at(0).header.flags & ATP_FLAG_ECN, 0);
    bench.handle(bench.gradient(0, 1, 1), true);  // CE-marked on the server's own link
    bench.handle(bench.gradient(1, 1, 1));
    bench.handle(bench.gradient(2, 1, 1));
    EXPECT_NE(bench.answers().at(0).header.flags & ATP_FLAG_ECN, 0);
    for (std::uint16_t rank = 0; rank < 3; ++rank) bench.handle(bench.gradient(rank, 2, 1));
    EXPECT_EQ(bench.answers().at(0).header.flags & ATP_FLAG_ECN, 0);
    EXPECT_EQ(bench.server.counters().marked, 2U);
}

TEST_F(ServerTest, CongestionOfADuplicateReturnsWithTheAck) {
    bench.handle(bench.gradient(0, 0, 1));
    bench.handle(bench.gradient(0, 0, 1, ATP_FLAG_ECN));
    bench.handle(bench.gradient(1, 0, 1));
    bench.handle(bench.gradient(2, 0, 1));
    EXPECT_NE(bench.answers().at(0).header.flags & ATP_FLAG_ECN, 0);
}

// --- retention

TEST_F(ServerTest, StaleResendAfterAckGetsOneUnicastAckPerInterval) {
    bench.complete(0);
    const Bytes request = bench.gradient(1, 0, 1, ATP_FLAG_RESEND);
    bench.handle(request);
    const auto first = bench.answers();
    ASSERT_EQ(first.size(), 1U);
    EXPECT_EQ(first[0].header.type, ATP_TYPE_ACK);
    EXPECT_EQ(first[0].header.worker, 1);
    EXPECT_EQ(first[0].header.bitmap0, 0x2U);
    EXPECT_EQ(first[0].transmit.worker, 1);
    EXPECT_EQ(first[0].sums, (Sums{3, -3}));

    bench.handle(request);
    bench.now += std::chrono::microseconds(999);
    bench.handle(request);
    EXPECT_TRUE(bench.answers().empty()) << "the server sends one ACK per worker and interval";
    bench.now += std::chrono::microseconds(1);
    bench.handle(request);
    expect_one(ATP_TYPE_ACK, 1);
    EXPECT_EQ(bench.server.counters().acks, 1U) << "the ACK to all workers is sent once";
    EXPECT_EQ(bench.server.counters().reacks, 2U);
}

TEST_F(ServerTest, EachWorkerGetsARepeatedAckInTheSameInterval) {
    bench.complete(0);
    for (std::uint16_t rank = 0; rank < 3; ++rank) {
        bench.handle(bench.probe(rank, 0));
        expect_one(ATP_TYPE_ACK, rank);
    }
}

TEST_F(ServerTest, DuplicateWithoutResendAfterAckGetsNoAnswer) {
    bench.complete(0);
    bench.handle(bench.gradient(1, 0, 1));
    EXPECT_TRUE(bench.answers().empty());
    EXPECT_EQ(bench.server.counters().duplicates, 1U);
}

TEST_F(ServerTest, ResultIsKeptAfterTheNextWindowIsComplete) {
    for (std::uint32_t seq = 0; seq < 8; ++seq)
        bench.complete(seq);  // W = 4: a slow worker may still need the results of 4..7
    for (std::uint32_t seq = 4; seq < 8; ++seq) {
        bench.handle(bench.probe(2, seq));
        expect_one(ATP_TYPE_ACK, 2);
    }
    bench.handle(bench.probe(2, 0));
    expect_one(ATP_TYPE_ACK, 2);
}

TEST_F(ServerTest, FragmentThatEveryWorkerHasIsStale) {
    for (std::uint32_t seq = 0; seq < 8; ++seq) bench.complete(seq);
    bench.handle(bench.gradient(0, 8, 1));  // reuses the record of 0: every worker has the result of 0
    bench.handle(bench.gradient(1, 0, 1, ATP_FLAG_RESEND));
    bench.handle(bench.probe(1, 0));
    EXPECT_TRUE(bench.answers().empty());
    EXPECT_EQ(bench.server.counters().stale, 2U);
}

TEST_F(ServerTest, FragmentBeyondTheWindowIsDropped) {
    bench.handle(bench.gradient(0, 4, 1));
    bench.handle(bench.probe(0, 4));
    bench.handle(bench.gradient(0, 0x80000000U, 1));
    EXPECT_EQ(bench.server.counters().ahead, 2U);
    EXPECT_EQ(bench.server.counters().stale, 1U) << "a sequence number half the space ahead counts as behind";
    EXPECT_EQ(bench.server.counters().gradients, 0U);
    bench.handle(bench.gradient(0, 3, 1));
    EXPECT_EQ(bench.server.counters().gradients, 1U);
}

TEST(Server, FragmentsCompleteAcrossTheSequenceWrapForSeveralWindows) {
    for (const unsigned window_log2 : {0U, 1U, 3U}) {
        ChannelConfig channel = ServerBench::default_channel();
        channel.first_seq = 0xfffffffdU;
        channel.window_log2 = static_cast<std::uint8_t>(window_log2);
        ServerBench bench(*Membership::star(2), channel);
        for (std::uint32_t step = 0; step < 20; ++step) {
            const std::uint32_t seq = channel.first_seq + step;
            bench.handle(bench.gradient(0, seq, 1));
            bench.handle(bench.gradient(1, seq, 2));
            const auto answers = bench.answers();
            ASSERT_EQ(answers.size(), 1U) << step;
            EXPECT_EQ(answers[0].header.seq, seq);
            EXPECT_EQ(answers[0].sums, (Sums{3, -3}));
            EXPECT_EQ(bench.server.base(), seq + 1);
        }
    }
}

// --- probes

TEST_F(ServerTest, ProbeGetsAWaitThatNamesTheMissingWorkers) {
    bench.handle(bench.gradient(0, 0, 1));
    bench.handle(bench.probe(1, 0));
    const auto answers = bench.answers();
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].header.type, ATP_TYPE_WAIT);
    EXPECT_EQ(answers[0].header.worker, 1);
    EXPECT_EQ(answers[0].header.bitmap0, 0x4U) << "worker 2 has sent neither a gradient nor a PROBE";
    EXPECT_EQ(answers[0].header.bitmap1, 0x1U);
}

TEST_F(ServerTest, ProbeOfTheLastMissingWorkerGetsANack) {
    bench.handle(bench.gradient(0, 0, 1));
    bench.handle(bench.probe(1, 0));
    (void)bench.answers();
    bench.handle(bench.probe(2, 0));
    const auto answers = bench.answers();
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].header.type, ATP_TYPE_NACK);
    EXPECT_EQ(answers[0].header.worker, 2);
    EXPECT_EQ(answers[0].header.bitmap0, 0x4U);
    EXPECT_EQ(answers[0].header.lanes, ATP_DTYPE_INT32);
    EXPECT_EQ(answers[0].header.flags & ATP_FLAG_BYPASS, 0)
        << "without BYPASS, the resend fetches the partial sum of the switch";
}

TEST_F(ServerTest, ProbeOfAnIncludedWorkerGetsAWait) {
    bench.handle(bench.gradient(0, 0, 1));
    for (std::uint16_t rank = 1; rank < 3; ++rank) bench.handle(bench.probe(rank, 0));
    (void)bench.answers();
    bench.handle(bench.probe(0, 0));
    const auto answers = bench.answers();
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].header.type, ATP_TYPE_WAIT);
    EXPECT_EQ(answers[0].header.bitmap1, 0U) << "all workers have sent, so the WAIT names no worker";
}

TEST_F(ServerTest, RepeatedProbeGetsARepeatedNack) {
    for (std::uint16_t rank = 0; rank < 3; ++rank) bench.handle(bench.probe(rank, 0));
    EXPECT_EQ(bench.server.counters().nacks, 1U);
    bench.handle(bench.probe(2, 0));
    EXPECT_EQ(bench.server.counters().nacks, 2U) << "the repeat interval does not apply to a PROBE";
}

TEST_F(ServerTest, NackToMissingWorkersIsRepeatedOnlyAfterTheInterval) {
    bench.handle(bench.members_gradient(0, 0x3, 0, 3));
    const Bytes overlapping = bench.members_gradient(0, 0x6, 0, 6);
    bench.handle(overlapping);
    EXPECT_EQ(bench.answers().at(0).header.bitmap0, 0x4U);
    bench.now += std::chrono::microseconds(999);
    bench.handle(overlapping);
    EXPECT_TRUE(bench.answers().empty());
    bench.now += std::chrono::microseconds(1);
    bench.handle(overlapping);
    expect_one(ATP_TYPE_NACK, ATP_WORKER_ALL);
}

TEST_F(ServerTest, ProbeOfAnUnknownWorkerIsRefused) {
    testing::Bytes bytes = bench.probe(0, 0);
    wire::store_u16(&bytes[ATP_OFFSET_WORKER], 3);
    bench.handle(bytes);
    wire::store_u16(&bytes[ATP_OFFSET_WORKER], ATP_WORKER_ALL);
    bench.handle(bytes);
    EXPECT_EQ(bench.server.counters().refused, 2U);
    EXPECT_TRUE(bench.answers().empty());
}

// --- aggregator index of the next fragment of a slot

TEST_F(ServerTest, AckWithoutCollisionKeepsTheIndex) {
    bench.handle(bench.members_gradient(0, 0x7, 1, 3));
    const atp_header ack = bench.answers().at(0).header;
    EXPECT_EQ(ack.index, bench.channel.index(1, 0));
    EXPECT_EQ(ack.argument, bench.channel.index(1, 0));
}

TEST_F(ServerTest, SlotThatCollidesTwiceGetsANewIndex) {
    const std::uint32_t first_index = bench.channel.index(1, 0);
    for (std::uint16_t rank = 0; rank < 3; ++rank) bench.handle(bench.gradient(rank, 1, 1, ATP_FLAG_COLLISION));
    EXPECT_EQ(bench.answers().at(0).header.argument, first_index) << "one collision does not move the slot";
    for (const std::uint32_t seq : {0U, 2U, 3U, 4U}) bench.complete(seq);
    for (std::uint16_t rank = 0; rank < 3; ++rank) bench.handle(bench.gradient(rank, 5, 1, ATP_FLAG_COLLISION));
    const atp_header ack = bench.answers().at(0).header;
    EXPECT_EQ(ack.index, first_index) << "the index of the completed fragment, so that its aggregator is released";
    const std::uint32_t next_index = ack.argument;
    EXPECT_NE(next_index, first_index);

    bench.handle(bench.probe(2, 5));
    EXPECT_EQ(bench.answers().at(0).header.argument, next_index) << "a late PROBE gets the same index";
    for (const std::uint32_t seq : {6U, 7U, 8U}) bench.complete(seq);
    for (std::uint16_t rank = 0; rank < 3; ++rank) bench.handle(bench.gradient(rank, 9, 1));
    const atp_header later = bench.answers().at(0).header;
    EXPECT_EQ(later.index, next_index);
    EXPECT_EQ(later.argument, next_index);
    EXPECT_EQ(bench.server.counters().remapped, 1U);
}

TEST_F(ServerTest, RareCollisionsMoveNoSlot) {
    for (std::uint32_t seq = 0; seq < 64; ++seq) {
        bench.complete(seq, seq % 16 == 0 ? unsigned{ATP_FLAG_COLLISION}
                                          : 0U);  // one collision in every fourth fragment of slot 0
    }
    EXPECT_EQ(bench.server.counters().collided, 4U);
    EXPECT_EQ(bench.server.counters().remapped, 0U);
}

// --- packets that do not belong to the job

TEST_F(ServerTest, PacketOfAnotherJobTokenOrChannelIsForged) {
    for (int part = 0; part < 3; ++part) {
        const ChannelConfig ours = bench.channel;
        if (part == 0) bench.channel.job = 9;
        if (part == 1) bench.channel.token = 9;
        if (part == 2) bench.channel.channel = 9;
        bench.handle(bench.members_gradient(0, 0x7, 0, 666));
        bench.handle(bench.probe(0, 0));
        bench.channel = ours;
    }
    EXPECT_EQ(bench.server.counters().forged, 6U);
    EXPECT_TRUE(bench.answers().empty());
    EXPECT_EQ(bench.server.base(), 0U);
}

TEST_F(ServerTest, ShapeThatTheJobNeverHasIsRefused) {
    bench.handle(bench.members_gradient(0, 0x7, 0, 1, ATP_FLAG_AUDIT));
    const auto with = [&](std::size_t offset, std::uint32_t value, std::size_t mask_offset) {
        testing::Bytes bytes = bench.gradient(0, 0, 1);
        wire::store_u32(&bytes[offset], value);
        wire::store_u32(&bytes[mask_offset], value);
        bench.handle(bytes);
    };
    with(ATP_OFFSET_BITMAP0, 0x8, ATP_OFFSET_MASK0);  // a fourth member
    with(ATP_OFFSET_BITMAP1, 0x2, ATP_OFFSET_MASK1);  // a second unit
    bench.handle(testing::make_packet(testing::gradient_of(bench.channel, bench.members, 0, 0), {1, 2, 3}));
    EXPECT_EQ(bench.server.counters().refused, 4U);
    EXPECT_EQ(bench.server.counters().gradients, 0U);
}

TEST_F(ServerTest, TypeThatOnlyAServerSendsIsRefused) {
    atp_header header = testing::gradient_of(bench.channel, bench.members, 0, 0);
    header.type = ATP_TYPE_ACK;
    bench.handle(testing::make_packet(header, {1, 2}));
    header.type = ATP_TYPE_NACK;
    bench.handle(testing::make_packet(header));
    header.lanes = ATP_DTYPE_NONE;
    for (const atp_type type : {ATP_TYPE_WAIT, ATP_TYPE_FLUSH}) {
        header.type = static_cast<std::uint8_t>(type);
        bench.handle(testing::make_packet(header));
    }
    EXPECT_EQ(bench.server.counters().refused, 4U);
}

TEST_F(ServerTest, RandomAndTruncatedBytesAreCountedAndDropped) {
    Random random(4);
    const Bytes good = bench.gradient(0, 0, 1);
    for (std::size_t size = 0; size < good.size(); ++size) {
        if (size == ATP_HEADER_BYTES + ATP_LANE_BYTES) continue;  // this size is that of a fragment with one lane
        bench.handle(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)));
    }
    for (int i = 0; i < 10'000; ++i) {
        Bytes bytes(random.below(100));
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.bits());
        bench.handle(bytes);
    }
    EXPECT_EQ(bench.server.counters().refused + bench.server.counters().forged, good.size() - 1 + 10'000);
    EXPECT_EQ(bench.server.counters().gradients, 0U);
    EXPECT_TRUE(bench.answers().empty());
}

// --- full queues

TEST_F(ServerTest, AckThatDoesNotFitInTheQueueIsSentAfterAProbe) {
    for (std::uint32_t seq = 0; seq < 4; ++seq) bench.handle(bench.gradient(0, seq, 1));
    for (int i = 0; i < 10'000; ++i) bench.handle(bench.probe(1, 0));  // each PROBE gets a WAIT
    EXPECT_GT(bench.server.counters().unsent, 0U);
    const std::size_t queued = bench.answers().size();
    EXPECT_EQ(queued + bench.server.counters().unsent, 10'000U);
    EXPECT_LT(queued, 1'000U) << "the queue holds the number of answers for which it allocated memory";

    for (int i = 0; i < 10'000; ++i) bench.handle(bench.probe(1, 0));
    bench.handle(bench.gradient(1, 0, 1));
    bench.handle(bench.gradient(2, 0, 1));  // completes fragment 0, but the ACK does not fit in the queue
    for (const ServerAnswer& answer : bench.answers()) EXPECT_NE(answer.header.type, ATP_TYPE_ACK);
    bench.handle(bench.probe(1, 0));
    expect_one(ATP_TYPE_ACK, 1);
}

TEST_F(ServerTest, OutdatedAnswerIsNotSent) {
    bench.handle(bench.probe(0, 0));  // a WAIT is queued
    for (std::uint16_t rank = 0; rank < 3; ++rank) bench.handle(bench.gradient(rank, 0, 1));
    const auto answers = bench.answers();
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].header.type, ATP_TYPE_ACK);
}

TEST_F(ServerTest, PartsAreRefused) {
    atp_header part = testing::gradient_of(bench.channel, bench.members, 0, 0);
    part.flags = ATP_FLAG_BYPASS;
    part.part = 1;
    bench.handle(testing::make_packet(part, {1}));
    EXPECT_EQ(bench.server.counters().refused, 1U);
    EXPECT_EQ(bench.server.counters().gradients, 0U);
}

TEST_F(ServerTest, PaddedProbeIsAnsweredLikeAShortOne) {
    atp_header probe = testing::gradient_of(bench.channel, bench.members, 1, 0);
    probe.lanes = ATP_DTYPE_NONE;
    probe.type = ATP_TYPE_PROBE;
    bench.handle(testing::make_packet(probe, testing::Lanes(300)));
    ASSERT_EQ(bench.answers().size(), 1U);
    EXPECT_EQ(bench.server.counters().waits, 1U);
}

TEST_F(ServerTest, MarksOfBothDirectionsStayApart) {
    for (const unsigned flag : {ATP_FLAG_ECN, ATP_FLAG_ECN_DOWN}) {
        ServerBench one{*Membership::star(2)};
        one.handle(one.gradient(0, 0, 1, flag));
        one.handle(one.gradient(1, 0, 1));
        EXPECT_EQ(one.answers().at(0).header.flags, flag);
        EXPECT_EQ(one.server.counters().marked, 1U);
    }
}

Bytes sent_as(Bytes packet, std::uint8_t sending) {
    packet[ATP_OFFSET_SENDING] = std::byte{sending};
    return packet;
}

TEST(ServerAnswers, AckForAllNamesTheCompletingRankAndItsSending) {
    ServerBench bench{*Membership::star(3)};
    bench.handle(sent_as(bench.gradient(0, 0, 1), 7));
    bench.handle(sent_as(bench.gradient(2, 0, 1), 8));
    bench.handle(sent_as(bench.gradient(1, 0, 1), 200));
    const auto answers = bench.answers();
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].header.worker, ATP_WORKER_ALL);
    EXPECT_EQ(answers[0].header.peer, 1);
    EXPECT_EQ(answers[0].header.sending, 200);
    EXPECT_EQ(answers[0].header.part, 0);
}

TEST(ServerAnswers, AnswersRepeatTheSendingOfTheirPacket) {
    ServerBench bench{*Membership::star(3)};
    bench.handle(sent_as(bench.probe(1, 0), 3));
    auto answers = bench.answers();
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].header.type, ATP_TYPE_WAIT);
    EXPECT_EQ(answers[0].header.peer, 1);
    EXPECT_EQ(answers[0].header.sending, 3);
    bench.handle(sent_as(bench.gradient(2, 0, 1, ATP_FLAG_OVERFLOW), 9));
    answers = bench.answers();
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].header.type, ATP_TYPE_NACK);
    EXPECT_EQ(answers[0].header.peer, 2) << "also for the workers that are not the cause";
    EXPECT_EQ(answers[0].header.sending, 9);
    bench.complete(1);
    bench.handle(sent_as(bench.gradient(0, 1, 1, ATP_FLAG_RESEND), 44));
    answers = bench.answers();
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].header.type, ATP_TYPE_ACK);
    EXPECT_EQ(answers[0].header.worker, 0);
    EXPECT_EQ(answers[0].header.peer, 0);
    EXPECT_EQ(answers[0].header.sending, 44);
}

}  // namespace
}  // namespace atp::protocol
