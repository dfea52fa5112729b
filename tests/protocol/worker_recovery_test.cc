// SPDX-License-Identifier: Apache-2.0
// How a worker handles loss, a missing answer, congestion and deadlines.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <set>
#include <vector>

#include "policy/experiment.h"
#include "support/worker_bench.h"

namespace atp::protocol {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::WorkerBench;
using testing::WorkerPacket;
using Sequences = std::vector<std::uint32_t>;

class WorkerRecovery : public ::testing::Test {
  protected:
    // Sends `fragments` fragments, at most the window of 16.
    void send(std::size_t fragments) {
        ASSERT_TRUE(bench.submit_fragments(fragments).has_value());
        (void)bench.packets();
    }
    void ack(std::uint32_t seq, unsigned flags = 0) { bench.handle(bench.ack(seq, 3, flags)); }
    // The timer expires. The result of fragment 0 arrives 50 ms after its gradient was sent, twice.
    static void learn_minimum_timeout(WorkerBench& bench) {
        const Time sent_at = bench.now;
        bench.expire();
        (void)bench.packets();
        bench.now = sent_at + milliseconds(50);
        bench.handle(bench.ack(0));
        bench.handle(bench.ack(0));
    }

    WorkerBench bench;
};

// --- newer ACKs

TEST_F(WorkerRecovery, ThreeNewerAcksCauseAResend) {
    send(8);
    ack(1);
    ack(2);
    EXPECT_TRUE(bench.packets().empty());
    ack(3);
    const auto packets = bench.packets();
    ASSERT_EQ(packets.size(), 1U);
    EXPECT_EQ(packets[0].header.seq, 0U);
    EXPECT_TRUE(packets[0].has(ATP_FLAG_RESEND));
    EXPECT_FALSE(packets[0].has(ATP_FLAG_BYPASS)) << "without BYPASS, the resend fetches the partial sum of the switch";
    EXPECT_EQ(bench.worker.counters().resent_newer, 1U);
}

TEST_F(WorkerRecovery, CopiesOfOneAckCountOnce) {
    send(8);
    for (int copy = 0; copy < 10; ++copy) ack(1);
    ack(2);
    for (int copy = 0; copy < 10; ++copy) ack(2);
    EXPECT_TRUE(bench.packets().empty());
}

TEST_F(WorkerRecovery, ThreeNewerAcksInAnyOrderCauseAResend) {
    send(8);
    ack(6);
    ack(4);
    ack(5);  // now three newer ACKs for each of the fragments 0..3
    EXPECT_EQ(bench.sequences(), (Sequences{0, 1, 2, 3}));
}

TEST_F(WorkerRecovery, AcksOfFragmentsSentBeforeAResendCauseNoSecondResend) {
    send(12);
    for (std::uint32_t seq = 1; seq < 4; ++seq) ack(seq);
    EXPECT_EQ(bench.sequences(), (Sequences{0}));
    for (std::uint32_t seq = 4; seq < 12; ++seq) ack(seq);
    EXPECT_TRUE(bench.packets().empty());
    EXPECT_EQ(bench.worker.counters().resent_newer, 1U);
}

TEST_F(WorkerRecovery, AcksOfFragmentsSentAfterAResendCauseASecondResend) {
    const policy::Experiment fixed_window({.fixed_window = true});
    WorkerConfig config = WorkerBench::default_config();
    config.channel.policy = &fixed_window;
    WorkerBench steady(config);
    const auto send = [&steady](std::size_t fragments) {
        ASSERT_TRUE(steady.submit_fragments(fragments).has_value());
        (void)steady.packets();
    };
    const auto ack = [&steady](std::uint32_t seq) { steady.handle(steady.ack(seq)); };
    send(4);
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
    EXPECT_EQ(steady.worker.counters().resent_newer, 2U);
}

TEST_F(WorkerRecovery, ResendAfterANackIsResentAfterThreeNewerAcks) {
    send(4);
    bench.handle(bench.nack(0));
    EXPECT_EQ(bench.sequences(), (Sequences{0}));
    send(4);
    for (std::uint32_t seq = 4; seq < 7; ++seq) ack(seq);
    EXPECT_EQ(bench.sequences(), (Sequences{0, 1, 2, 3}));
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
    for (const std::uint32_t seq : {1U, 2U, 3U}) ack(seq);
    ack(0);
    EXPECT_TRUE(bench.packets().empty());
}

TEST_F(WorkerRecovery, ThreeNewerAcksAcrossTheWrapCauseAResend) {
    WorkerConfig config = WorkerBench::default_config();
    config.channel.first_seq = 0xfffffffeU;
    WorkerBench wrapping(config);
    ASSERT_TRUE(wrapping.submit_fragments(8).has_value());
    (void)wrapping.packets();
    for (const std::uint32_t seq : {0xffffffffU, 0U, 1U}) wrapping.handle(wrapping.ack(seq));
    EXPECT_EQ(wrapping.sequences(), (Sequences{0xfffffffeU}));
}

// --- timeouts

TEST_F(WorkerRecovery, TimeoutSendsProbesWithoutData) {
    send(3);
    EXPECT_EQ(bench.worker.poll_timeout(), bench.now + milliseconds(1));
    bench.expire();
    const auto packets = bench.packets();
    ASSERT_EQ(packets.size(), 3U);
    for (std::uint32_t seq = 0; seq < 3; ++seq) {
        EXPECT_TRUE(packets[seq].is(ATP_TYPE_PROBE));
        EXPECT_EQ(packets[seq].header.seq, seq);
        EXPECT_EQ(packets[seq].header.worker, 1);
        EXPECT_EQ(packets[seq].bytes.size(), ATP_HEADER_BYTES);
    }
    EXPECT_EQ(bench.worker.counters().resent, 0U);
}

TEST_F(WorkerRecovery, TimeoutSendsABoundedNumberOfProbes) {
    send(16);
    bench.expire();
    EXPECT_EQ(bench.packets().size(), 8U);
}

TEST_F(WorkerRecovery, TimeoutWithBlindResendSendsGradientsInsteadOfProbes) {
    WorkerConfig config = WorkerBench::default_config();
    config.blind_resend = true;
    config.probe_burst = 2;
    WorkerBench blind(config);
    ASSERT_TRUE(blind.submit_fragments(3).has_value());
    (void)blind.packets();
    blind.expire();
    const auto packets = blind.packets();
    ASSERT_EQ(packets.size(), 2U) << "probe_burst also limits blind resends";
    for (std::uint32_t seq = 0; seq < 2; ++seq) {
        EXPECT_TRUE(packets[seq].has(ATP_FLAG_RESEND));
        EXPECT_EQ(packets[seq].header.seq, seq);
    }
    EXPECT_EQ(blind.worker.counters().resent, 2U);
    EXPECT_EQ(blind.worker.counters().probes, 0U);
}

TEST_F(WorkerRecovery, TimeoutDoublesToItsMaximumAndResetsOnProgress) {
    send(2);
    EXPECT_EQ(bench.worker.poll_timeout() - bench.now, milliseconds(1)) << "the first timeout has no random delay";
    for (const int doubled_ms : {2, 4, 8, 16, 32, 64, 128, 200, 200, 200}) {
        bench.expire();
        (void)bench.packets();
        const Duration timeout = bench.worker.poll_timeout() - bench.now;
        EXPECT_GE(timeout, milliseconds(doubled_ms));
        EXPECT_LE(timeout, milliseconds(doubled_ms) * 3 / 2) << "the random delay is at most half of the timeout";
    }
    ack(0);
    EXPECT_LE(bench.worker.poll_timeout() - bench.now, milliseconds(200)) << "the timeout is not doubled any more";
    bench.expire();
    EXPECT_EQ(bench.sequences(), (Sequences{1}));
}

TEST_F(WorkerRecovery, WorkersThatTimeOutTogetherRetryAtDifferentTimes) {
    WorkerConfig config = WorkerBench::default_config();
    std::set<Time> times;
    for (std::uint16_t rank = 0; rank < 32; ++rank) {
        config.rank = rank;
        config.place = Membership::star(32)->place(rank);
        WorkerBench one(config);
        ASSERT_TRUE(one.submit_fragments(1).has_value());
        (void)one.packets();
        one.expire();
        EXPECT_EQ(one.now, bench.now + milliseconds(1));
        times.insert(one.worker.poll_timeout());
    }
    EXPECT_GE(times.size(), 31U);
}

TEST_F(WorkerRecovery, TimeoutsOfOneWorkerVaryAfterEachExpiry) {
    WorkerConfig config = WorkerBench::default_config();
    config.min_timeout = config.max_timeout = milliseconds(100);
    WorkerBench steady(config);
    ASSERT_TRUE(steady.submit_fragments(1).has_value());
    std::set<Duration> timeouts;
    for (int expiry = 0; expiry < 20; ++expiry) {
        (void)steady.packets();
        steady.expire();
        timeouts.insert(steady.worker.poll_timeout() - steady.now);
    }
    EXPECT_GE(timeouts.size(), 19U);
}

TEST_F(WorkerRecovery, TimeoutFollowsTheRoundTrip) {
    ASSERT_TRUE(bench.submit_fragments(40).has_value());
    for (std::uint32_t seq = 0; seq < 30; ++seq) {
        (void)bench.packets();
        if (seq % 16 == 0) bench.now += milliseconds(10);
        ack(seq);
    }
    (void)bench.packets();
    EXPECT_GT(bench.worker.poll_timeout() - bench.now, milliseconds(5))
        << "the timeout follows the measured 10 ms, not the minimum of 1 ms";
}

// The round trip of a fragment that waits for the timer of another worker includes that timeout. If a worker measured
// it, each timeout would raise the timeouts of the other workers.
TEST_F(WorkerRecovery, RoundTripsOfFragmentsInFlightAtAnExpiryAreIgnored) {
    send(16);
    for (std::uint32_t seq = 0; seq < 16; ++seq) {
        bench.expire();
        (void)bench.packets();
        ack(seq);
    }
    ASSERT_TRUE(bench.submit_fragments(1).has_value());
    (void)bench.packets();
    EXPECT_EQ(bench.worker.poll_timeout() - bench.now, milliseconds(1));
}

// Results arrive in bursts that are further apart than the timeout. No packet is lost, but the worker cannot measure a
// round trip.
TEST_F(WorkerRecovery, RepeatedResultRaisesTheMinimumTimeout) {
    send(16);
    learn_minimum_timeout(bench);
    ack(1);
    EXPECT_EQ(bench.worker.poll_timeout() - bench.now, milliseconds(100));
    bench.expire();
    ack(2);
    EXPECT_EQ(bench.worker.poll_timeout() - bench.now, milliseconds(100)) << "an expiry keeps the raised minimum";
}

// In the queue of a slow link, the answer to a PROBE may wait behind the results of a whole window. The result of a
// fragment without a PROBE arrives earlier.
TEST_F(WorkerRecovery, LateResultWithoutAProbeRaisesTheMinimumTimeout) {
    send(16);
    const Time sent_at = bench.now;
    bench.expire();
    const std::uint32_t asked = bench.worker.config().probe_burst;
    EXPECT_EQ(bench.packets().size(), asked);
    bench.now = sent_at + milliseconds(50);
    for (std::uint32_t seq = 0; seq < asked; ++seq) ack(seq);
    EXPECT_EQ(bench.worker.poll_timeout() - bench.now, milliseconds(1)) << "these results may be answers to the PROBEs";
    ack(asked);
    EXPECT_EQ(bench.worker.poll_timeout() - bench.now, milliseconds(100));
}

// A result arrives late if the timer of another worker delayed it. It arrives twice if it was sent before the PROBE
// arrived at the server.
TEST_F(WorkerRecovery, ResultDelayedByOtherWorkersKeepsTheMinimumTimeout) {
    send(16);
    for (const bool lost : {false, true}) {
        const std::uint32_t seq = bench.worker.expected();
        bench.expire();
        (void)bench.packets();
        bench.handle(lost ? bench.nack(seq + 2) : bench.wait(seq + 2));
        (void)bench.packets();
        bench.now += milliseconds(50);
        ack(seq);
        ack(seq);
        ack(seq + 1);
        EXPECT_EQ(bench.worker.poll_timeout() - bench.now, milliseconds(1));
    }
}

TEST_F(WorkerRecovery, AnswerWithoutTheResultResetsTheMinimumTimeout) {
    for (const bool lost : {false, true}) {
        WorkerBench fresh;
        ASSERT_TRUE(fresh.submit_fragments(16).has_value());
        (void)fresh.packets();
        learn_minimum_timeout(fresh);
        fresh.expire();
        (void)fresh.packets();
        fresh.handle(lost ? fresh.nack(1) : fresh.wait(1));
        (void)fresh.packets();
        fresh.handle(fresh.ack(1));
        EXPECT_EQ(fresh.worker.poll_timeout() - fresh.now, milliseconds(1));
    }
}

TEST_F(WorkerRecovery, EarlyAndRepeatedTimeoutCallsDoNothing) {
    bench.worker.handle_timeout(bench.now);  // no fragment is in flight
    send(3);
    const Time deadline = bench.worker.poll_timeout();
    for (int call = 0; call < 1000; ++call) bench.worker.handle_timeout(deadline - microseconds(1));
    EXPECT_EQ(bench.worker.poll_timeout(), deadline);
    EXPECT_TRUE(bench.packets().empty());
    bench.now = deadline;
    for (int call = 0; call < 1000; ++call) bench.worker.handle_timeout(deadline);
    EXPECT_EQ(bench.packets().size(), 3U) << "1000 calls for one expiry send one burst of PROBEs";
}

TEST_F(WorkerRecovery, TimeoutsWithoutTransmissionsQueueOneBurst) {
    send(16);
    for (int expiry = 0; expiry < 100; ++expiry) bench.expire();
    EXPECT_EQ(bench.packets().size(), 8U);
}

TEST_F(WorkerRecovery, WorkerWithoutFragmentsInFlightHasNoTimer) {
    EXPECT_EQ(bench.worker.poll_timeout(), never);
    send(1);
    EXPECT_NE(bench.worker.poll_timeout(), never);
    ack(0);
    EXPECT_EQ(bench.worker.poll_timeout(), never);
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

TEST_F(WorkerRecovery, LossHalvesTheWindow) {
    send(100);
    for (const std::uint32_t seq : {1U, 2U, 3U}) ack(seq);
    EXPECT_EQ(bench.worker.counters().halvings, 1U);
    EXPECT_EQ(bench.worker.window_packets(), 8U);
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

// --- deadlines

TEST_F(WorkerRecovery, DeadlineFailsAllPendingOperationsWithTheMissingMembers) {
    const Time start = bench.now;
    ASSERT_TRUE(bench.submit({1, 2}, start + milliseconds(50)).has_value());
    ASSERT_TRUE(bench.submit({3, 4}).has_value());
    (void)bench.packets();
    bench.now += milliseconds(2);
    bench.handle(bench.wait(0, 0x1, 0x4));
    while (!bench.worker.failed()) bench.expire();
    EXPECT_EQ(bench.now, start + milliseconds(50)) << "the worker fails exactly at the deadline";
    const auto events = bench.events();
    ASSERT_EQ(events.size(), 2U);
    for (const WorkerEvent& event : events) {
        EXPECT_EQ(event.kind, WorkerEvent::Kind::timed_out);
        EXPECT_EQ(event.elapsed, milliseconds(50));
        EXPECT_TRUE(event.answered);
        EXPECT_EQ(event.answered_at, start + milliseconds(2));
        EXPECT_EQ(event.missing_units, 0x1U);
        EXPECT_EQ(event.missing_members, 0x4U);
    }
    EXPECT_FALSE(bench.submit({5, 6}).has_value());
    EXPECT_TRUE(bench.packets().empty());
    EXPECT_EQ(bench.worker.poll_timeout(), never);
}

TEST_F(WorkerRecovery, DeadlineWithoutAServerAnswerReportsThat) {
    ASSERT_TRUE(bench.submit({1, 2}, bench.now + milliseconds(5)).has_value());
    (void)bench.packets();
    while (!bench.worker.failed()) bench.expire();
    const auto events = bench.events();
    ASSERT_EQ(events.size(), 1U);
    EXPECT_FALSE(events[0].answered);
    EXPECT_EQ(events[0].missing_units, 0U);
}

TEST_F(WorkerRecovery, CompleteOperationIsReportedAsCompletedIfAnEarlierOneTimesOut) {
    ASSERT_TRUE(bench.submit({1, 2}, bench.now + milliseconds(5)).has_value());
    ASSERT_TRUE(bench.submit({3, 4}).has_value());
    (void)bench.packets();
    ack(1);
    while (!bench.worker.failed()) bench.expire();
    const auto events = bench.events();
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events[0].kind, WorkerEvent::Kind::timed_out);
    EXPECT_EQ(events[1].kind, WorkerEvent::Kind::completed);
}

TEST_F(WorkerRecovery, DeadlineHoldsBehindAnOperationWithALaterDeadline) {
    for (const Time of_the_first : {never, bench.now + milliseconds(80)}) {
        WorkerBench other;
        const Time start = other.now;
        ASSERT_TRUE(other.submit({1, 2}, of_the_first).has_value());
        ASSERT_TRUE(other.submit({3, 4}, start + milliseconds(20)).has_value());
        (void)other.packets();
        while (!other.worker.failed() && other.now < start + milliseconds(500)) other.expire();
        EXPECT_EQ(other.now, start + milliseconds(20));
        ASSERT_EQ(other.events().size(), 2U);
    }
}

TEST_F(WorkerRecovery, DeadlineOfACompleteOperationIsIgnored) {
    const Time start = bench.now;
    ASSERT_TRUE(bench.submit({1, 2}, start + milliseconds(80)).has_value());
    ASSERT_TRUE(bench.submit({3, 4}, start + milliseconds(20)).has_value());
    (void)bench.packets();
    ack(1);
    while (!bench.worker.failed()) bench.expire();
    EXPECT_EQ(bench.now, start + milliseconds(80));
}

TEST_F(WorkerRecovery, FailedWorkerDeliversNothing) {
    ASSERT_TRUE(bench.submit({1, 2}, bench.now + milliseconds(5)).has_value());
    (void)bench.packets();
    while (!bench.worker.failed()) bench.expire();
    ack(0);
    EXPECT_EQ(bench.outputs[0], (std::vector<float>{0, 0})) << "the caller may have freed the memory";
}

TEST_F(WorkerRecovery, OperationBeforeItsDeadlineCompletes) {
    ASSERT_TRUE(bench.submit({1, 2}, bench.now + milliseconds(5)).has_value());
    (void)bench.packets();
    ack(0);
    bench.now += milliseconds(50);
    bench.worker.handle_timeout(bench.now);
    EXPECT_FALSE(bench.worker.failed());
    EXPECT_EQ(bench.events().at(0).kind, WorkerEvent::Kind::completed);
}

}  // namespace
}  // namespace atp::protocol
