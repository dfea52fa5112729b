// SPDX-License-Identifier: Apache-2.0
// How a worker handles loss, requests of the server, and congestion.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "support/recovering_worker.h"

namespace atp::protocol {
namespace {

using testing::WorkerBench;
using testing::WorkerPacket;
using Sequences = std::vector<std::uint32_t>;
using WorkerRecovery = testing::RecoveringWorker;

// --- newer ACKs

TEST_F(WorkerRecovery, H82_NewerAcksOfARoundTripCauseAProbeAndNoResend) {
    send(8);
    for (std::uint32_t seq = 1; seq < 7; ++seq) ack(seq);
    EXPECT_TRUE(bench.packets().empty()) << "the server may have asked the worker whose gradient it misses";
    ack(7);
    const auto packets = bench.packets();
    ASSERT_EQ(packets.size(), 1U);
    EXPECT_TRUE(packets[0].is(ATP_TYPE_PROBE));
    EXPECT_EQ(packets[0].header.seq, 0U);
    EXPECT_EQ(bench.worker.counters().resent_newer, 0U);
}

// docs/spec/hazards.md#h106
TEST_F(WorkerRecovery, H106_NackOfAProbeThatLeftBeforeTheResendIsIgnored) {
    send(8);
    for (std::uint32_t seq = 1; seq < 8; ++seq) ack(seq);
    ASSERT_EQ(bench.packets().at(0).header.sending, 1) << "the PROBE";
    bench.handle(bench.nack(0));
    const auto resends = bench.packets();
    ASSERT_EQ(resends.size(), 1U);
    EXPECT_EQ(resends[0].header.sending, 2);
    atp_header answer = bench.answer(ATP_TYPE_NACK, ATP_DTYPE_INT32, 0);
    answer.peer = bench.config.rank;
    answer.sending = 1;
    bench.handle(testing::make_packet(answer));
    EXPECT_TRUE(bench.packets().empty());
    answer.sending = 3;
    bench.handle(testing::make_packet(answer));
    EXPECT_EQ(bench.packets().size(), 1U) << "of a later PROBE: the resend was lost";
}

TEST_F(WorkerRecovery, CopiesOfOneAckCountOnce) {
    send(8);
    for (int copy = 0; copy < 10; ++copy) ack(1);
    ack(2);
    for (int copy = 0; copy < 10; ++copy) ack(2);
    EXPECT_TRUE(bench.packets().empty());
}

TEST_F(WorkerRecovery, NewerAcksInAnyOrderCauseAProbe) {
    send(8);
    ack(6);
    ack(4);
    ack(5);  // now three newer ACKs for each of the fragments 0..3
    EXPECT_TRUE(bench.packets().empty());
    ack(7);
    EXPECT_EQ(bench.sequences(), (Sequences{0, 1, 2, 3}));
}

TEST_F(WorkerRecovery, AcksOfFragmentsSentBeforeAResendCauseNoSecondResend) {
    send(12);
    for (std::uint32_t seq = 1; seq < 4; ++seq) ack(seq);
    bench.handle(bench.nack(0));
    EXPECT_EQ(bench.sequences(), (Sequences{0}));
    for (std::uint32_t seq = 4; seq < 12; ++seq) ack(seq);
    EXPECT_TRUE(bench.packets().empty());
    EXPECT_EQ(bench.worker.counters().resent, 1U);
}

TEST_F(WorkerRecovery, AcksOfFragmentsSentAfterAResendCauseASecondResend) {
    WorkerConfig config = WorkerBench::default_config();
    config.congestion.least_packets = config.channel.window();
    WorkerBench steady(config);
    const auto send = [&steady](std::size_t fragments) {
        ASSERT_TRUE(steady.submit_fragments(fragments).has_value());
        (void)steady.packets();
    };
    const auto ack = [&steady](std::uint32_t seq) { steady.handle(steady.ack(seq)); };
    send(4);
    steady.handle(steady.nack(0));
    for (std::uint32_t seq = 1; seq < 4; ++seq) ack(seq);
    EXPECT_EQ(steady.sequences(), (Sequences{0}));
    send(7);  // fragments 4 to 10
    ack(4);
    ack(5);
    EXPECT_TRUE(steady.packets().empty());
    ack(6);
    EXPECT_EQ(steady.sequences(), (Sequences{0}));
    for (std::uint32_t seq = 7; seq < 11; ++seq) ack(seq);
    EXPECT_TRUE(steady.packets().empty()) << "these fragments were sent before the second resend";
    EXPECT_EQ(steady.worker.counters().resent_newer, 1U);
}

TEST_F(WorkerRecovery, ResendAfterANackIsResentAfterThreeNewerAcks) {
    send(4);
    bench.handle(bench.nack(0));
    EXPECT_EQ(bench.sequences(), (Sequences{0}));
    send(4);
    for (std::uint32_t seq = 4; seq < 7; ++seq) ack(seq);
    EXPECT_EQ(bench.sequences(), (Sequences{0}));
    ack(7);
    EXPECT_EQ(bench.sequences(), (Sequences{1, 2, 3})) << "PROBEs of those that were sent once";
}

TEST_F(WorkerRecovery, AcknowledgedResendIsNotResent) {
    send(4);
    for (std::uint32_t seq = 1; seq < 4; ++seq) ack(seq);
    EXPECT_EQ(bench.sequences(), (Sequences{0}));
    ack(0);
    send(8);
    for (std::uint32_t seq = 4; seq < 12; ++seq) ack(seq);
    EXPECT_TRUE(bench.packets().empty());
}

TEST_F(WorkerRecovery, AckBeforeTheResendLeavesCancelsIt) {
    send(8);
    bench.handle(bench.nack(0));
    ack(0);
    EXPECT_TRUE(bench.packets().empty());
}

TEST_F(WorkerRecovery, NewerAcksAcrossTheWrapCauseAProbe) {
    WorkerConfig config = WorkerBench::default_config();
    config.channel.first_seq = 0xfffffffeU;
    WorkerBench wrapping(config);
    ASSERT_TRUE(wrapping.submit_fragments(8).has_value());
    (void)wrapping.packets();
    for (const std::uint32_t seq : {0xffffffffU, 0U, 1U, 2U, 3U, 4U, 5U}) wrapping.handle(wrapping.ack(seq));
    EXPECT_EQ(wrapping.sequences(), (Sequences{0xfffffffeU}));
}

// --- requests

TEST_F(WorkerRecovery, NackCausesOneResend) {
    send(2);
    bench.handle(bench.nack(1));
    bench.handle(bench.nack(1));
    const auto packets = bench.packets();
    ASSERT_EQ(packets.size(), 1U);
    EXPECT_EQ(packets[0].header.seq, 1U);
    EXPECT_TRUE(packets[0].has(ATP_FLAG_RESEND));
    bench.handle(bench.nack(1));
    EXPECT_EQ(bench.packets().size(), 1U) << "the second NACK causes a second resend";
}

TEST_F(WorkerRecovery, NackForOtherWorkersIsIgnored) {
    send(2);
    atp_header header = bench.answer(ATP_TYPE_NACK, ATP_DTYPE_INT32, 0);
    header.bitmap0 = 0x5;  // workers 0 and 2
    bench.handle(testing::make_packet(header));
    header.bitmap0 = 0x7;
    header.bitmap1 = 0x2;
    header.mask1 = 0x3;
    bench.handle(testing::make_packet(header));
    EXPECT_TRUE(bench.packets().empty());
    EXPECT_EQ(bench.worker.counters().nacks, 0U);
}

TEST_F(WorkerRecovery, NackOfAFinishedOrUnsentFragmentIsIgnored) {
    send(2);
    ack(0);
    for (const std::uint32_t seq : {0U, 2U, 0xffffffffU}) bench.handle(bench.nack(seq));
    EXPECT_TRUE(bench.packets().empty());
}

TEST_F(WorkerRecovery, NackWithBypassCausesAnUnaggregatedResend) {
    send(1);
    bench.handle(bench.nack(0, ATP_DTYPE_INT32, ATP_FLAG_BYPASS));
    const auto packets = bench.packets();
    ASSERT_EQ(packets.size(), 1U);
    EXPECT_EQ(packets[0].header.lanes, ATP_INT32_LANES);
    EXPECT_TRUE(packets[0].has(ATP_FLAG_BYPASS));
    EXPECT_TRUE(packets[0].has(ATP_FLAG_RESEND));
}

TEST_F(WorkerRecovery, AfterARequestForFloatsAllResendsAreFloats) {
    send(1);
    bench.handle(bench.nack(0, ATP_DTYPE_FLOAT32, ATP_FLAG_BYPASS));
    EXPECT_EQ(bench.packets().at(0).header.lanes, ATP_FLOAT32_LANES);
    bench.handle(bench.nack(0, ATP_DTYPE_INT32, ATP_FLAG_BYPASS));  // a late copy of an older NACK
    EXPECT_EQ(bench.packets().at(0).header.lanes, ATP_FLOAT32_LANES);
    bench.handle(bench.nack(0));
    EXPECT_EQ(bench.packets().at(0).header.lanes, ATP_FLOAT32_LANES);
}

TEST_F(WorkerRecovery, FragmentAfterFloatsInItsSlotIsAggregated) {
    WorkerConfig config = WorkerBench::default_config();
    config.channel.window_log2 = 0;
    WorkerBench one_slot(config);
    ASSERT_TRUE(one_slot.submit_fragments(2).has_value());
    (void)one_slot.packets();
    one_slot.handle(one_slot.nack(0, ATP_DTYPE_FLOAT32, ATP_FLAG_BYPASS));
    (void)one_slot.packets();
    one_slot.handle(one_slot.ack(0));
    const auto packets = one_slot.packets();
    ASSERT_EQ(packets.size(), 1U);
    EXPECT_EQ(packets[0].header.lanes, ATP_INT32_LANES);
    EXPECT_EQ(packets[0].header.flags, 0);
}

TEST_F(WorkerRecovery, ResendsLeaveBeforeProbesAndNewFragments) {
    WorkerConfig config = WorkerBench::default_config();
    config.congestion.initial_packets = 2;
    WorkerBench small(config);
    ASSERT_TRUE(small.submit_fragments(6).has_value());
    ASSERT_EQ(small.sequences(), (Sequences{0, 1}));
    small.expire();
    small.handle(small.nack(1));
    small.handle(small.ack(0));
    const auto packets = small.packets();
    ASSERT_GE(packets.size(), 3U);
    EXPECT_TRUE(packets[0].has(ATP_FLAG_RESEND));
    EXPECT_TRUE(packets[1].is(ATP_TYPE_PROBE));
    EXPECT_EQ(packets[2].header.seq, 2U);
}

// --- congestion

TEST_F(WorkerRecovery, MarkedAcksHalveTheWindowOncePerWindow) {
    send(100);
    EXPECT_EQ(bench.worker.window_packets(), 16U);
    for (std::uint32_t seq = 0; seq < 16; ++seq) ack(seq, ATP_FLAG_ECN);
    EXPECT_EQ(bench.worker.counters().halvings, 1U);
    EXPECT_EQ(bench.worker.counters().ecn_acks, 16U);
    EXPECT_EQ(bench.worker.window_packets(), 8U);
    EXPECT_EQ(bench.packets().size(), 8U);
    ack(16, ATP_FLAG_ECN);
    EXPECT_EQ(bench.worker.counters().halvings, 2U) << "a mark in the next window halves again";
}

TEST_F(WorkerRecovery, OneLossOfAWindowIsNoCongestion) {
    send(100);
    bench.handle(bench.nack(0));
    EXPECT_EQ(bench.worker.counters().halvings, 0U);
    for (std::uint32_t seq = 0; seq < 16; ++seq) ack(seq);
    (void)bench.packets();
    bench.handle(bench.nack(16));
    EXPECT_EQ(bench.worker.counters().halvings, 0U) << "of another window";
}

TEST_F(WorkerRecovery, LossesThatAFullQueueCausesHalveTheWindow) {
    send(100);
    bench.handle(bench.nack(0));
    bench.handle(bench.nack(0));
    EXPECT_EQ(bench.worker.counters().halvings, 0U) << "the same packet";
    for (const std::uint32_t seq : {5U, 7U}) bench.handle(bench.nack(seq));
    EXPECT_EQ(bench.worker.counters().halvings, 0U) << "links lose some packets without being full";
    bench.handle(bench.nack(9));
    EXPECT_EQ(bench.worker.counters().halvings, 1U);
    EXPECT_EQ(bench.worker.window_packets(), 8U);
    bench.handle(bench.nack(10));
    EXPECT_EQ(bench.worker.counters().halvings, 1U) << "once for each window";
}

TEST_F(WorkerRecovery, TheLargestWindowLeavesSlotsFree) {
    WorkerConfig config = WorkerBench::default_config();
    config.congestion.most_packets = 4;
    WorkerBench roomy(config);
    ASSERT_TRUE(roomy.submit_fragments(100).has_value());
    EXPECT_EQ(roomy.sequences(), (Sequences{0, 1, 2, 3}));
    for (std::uint32_t seq = 1; seq < 16; ++seq) {
        roomy.handle(roomy.ack(seq));
        (void)roomy.packets();
        EXPECT_EQ(roomy.worker.next_seq(), std::min(seq + 4, 16U)) << "the oldest fragment keeps its slot";
    }
}

TEST_F(WorkerRecovery, FixedWindowIgnoresMarksAndLosses) {
    WorkerConfig config = WorkerBench::default_config();
    config.congestion.least_packets = config.channel.window();
    WorkerBench steady(config);
    ASSERT_TRUE(steady.submit_fragments(100).has_value());
    (void)steady.packets();
    steady.handle(steady.ack(0, 3, ATP_FLAG_ECN));
    for (const std::uint32_t seq : {2U, 3U, 4U}) steady.handle(steady.ack(seq));
    EXPECT_EQ(steady.worker.counters().halvings, 0U);
    EXPECT_EQ(steady.worker.window_packets(), 16U);
}

TEST_F(WorkerRecovery, MarkOfEitherDirectionHalvesTheWindow) {
    for (const unsigned flag : {ATP_FLAG_ECN, ATP_FLAG_ECN_DOWN}) {
        WorkerBench marked;
        ASSERT_TRUE(marked.submit_fragments(16).has_value());
        static_cast<void>(marked.packets());
        marked.handle(marked.ack(0, 3.0F, flag));
        EXPECT_EQ(marked.worker.counters().halvings, 1U) << flag;
        EXPECT_EQ(marked.worker.counters().ecn_acks, 1U) << flag;
    }
}

TEST_F(WorkerRecovery, GradientsAndProbesOfAFragmentAreNumberedInTurn) {
    ASSERT_TRUE(bench.submit_fragments(3).has_value());
    auto packets = bench.packets();
    ASSERT_EQ(packets.size(), 3U);
    for (const WorkerPacket& packet : packets) EXPECT_EQ(packet.header.sending, 0);
    bench.expire();
    for (const WorkerPacket& packet : bench.packets()) EXPECT_EQ(packet.header.sending, 1) << "a PROBE";
    bench.handle(bench.nack(1));
    packets = bench.packets();
    ASSERT_EQ(packets.size(), 1U);
    EXPECT_EQ(packets[0].header.seq, 1U);
    EXPECT_EQ(packets[0].header.sending, 2) << "the resend follows its PROBE";
    for (unsigned sending = 3; sending < 300; ++sending) {
        bench.handle(bench.nack(1));
        packets = bench.packets();
        ASSERT_EQ(packets.size(), 1U);
        ASSERT_EQ(packets[0].header.sending, sending % 256);
    }
}

TEST_F(WorkerRecovery, MarkedDownlinkIsReportedInOneGradient) {
    send(100);
    bench.handle(bench.ack(0), true);
    EXPECT_EQ(bench.worker.counters().halvings, 0U)
        << "a mark on the downlink does not halve the window: other workers do not see it";
    const auto packets = bench.packets();
    ASSERT_EQ(packets.size(), 1U);
    EXPECT_TRUE(packets[0].has(ATP_FLAG_ECN_DOWN));
    EXPECT_FALSE(packets[0].has(ATP_FLAG_ECN)) << "the way up met no congestion";
    ack(1);
    EXPECT_FALSE(bench.packets().at(0).has(ATP_FLAG_ECN_DOWN));
    EXPECT_EQ(bench.worker.counters().echoes, 1U);
}

}  // namespace
}  // namespace atp::protocol
