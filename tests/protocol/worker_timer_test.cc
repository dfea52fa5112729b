// SPDX-License-Identifier: Apache-2.0
// When a worker asks for a result that does not come.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <set>
#include <vector>

#include "support/recovering_worker.h"
#include "wire/packet.h"

namespace atp::protocol {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::Bytes;
using testing::header_in;
using testing::WorkerBench;
using WorkerTimer = testing::RecoveringWorker;

// The ACK of a fragment that this sending of some worker completed.
Bytes ack_caused_by(const WorkerBench& bench, std::uint32_t seq, std::uint8_t sending) {
    Bytes ack = bench.ack(seq);
    atp_header header = header_in(ack);
    header.sending = sending;
    wire::encode_header(header, ack);
    return ack;
}

TEST_F(WorkerTimer, H82_TimeoutSendsProbesWithoutData) {
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

TEST_F(WorkerTimer, H83_TimeoutSendsABoundedNumberOfProbes) {
    send(16);
    bench.expire();
    EXPECT_EQ(bench.packets().size(), 8U);
}

TEST_F(WorkerTimer, TimeoutDoublesToItsMaximumAndResetsOnProgress) {
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
    EXPECT_EQ(bench.sequences(), (std::vector<std::uint32_t>{1}));
}

TEST_F(WorkerTimer, H83_WorkersThatTimeOutTogetherRetryAtDifferentTimes) {
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

TEST_F(WorkerTimer, TimeoutsOfOneWorkerVaryAfterEachExpiry) {
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

TEST_F(WorkerTimer, TimeoutFollowsTheRoundTrip) {
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
TEST_F(WorkerTimer, RoundTripsOfFragmentsInFlightAtAnExpiryAreIgnored) {
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

TEST_F(WorkerTimer, H90_RoundTripOfAFragmentThatWasSentTwiceIsIgnored) {
    send(8);
    bench.handle(bench.nack(0));
    ASSERT_EQ(bench.packets().size(), 1U) << "the resend of fragment 0";
    bench.now += milliseconds(10);
    ack(0);
    EXPECT_EQ(bench.worker.poll_timeout() - bench.now, milliseconds(1)) << "which sending was answered?";
    ack(4);
    EXPECT_GT(bench.worker.poll_timeout() - bench.now, milliseconds(5)) << "a fragment that was sent once";
}

// Another worker lost a packet, and its resend brings the result. Two workers that wait for each other's timers in turn
// would raise both timeouts up to the maximum.
TEST_F(WorkerTimer, H92_RoundTripThatAResendOfAnyWorkerEndsIsIgnored) {
    send(2);
    bench.now += milliseconds(10);
    bench.handle(ack_caused_by(bench, 0, 2));
    EXPECT_EQ(bench.worker.poll_timeout() - bench.now, milliseconds(1));
    ack(1);
    EXPECT_EQ(bench.worker.counters().acks, 2U);
    send(1);
    EXPECT_GT(bench.worker.poll_timeout() - bench.now, milliseconds(5)) << "a first sending brought the other result";
}

// A fragment of floats may travel in several packets, which are numbered too. They may be those of another rank.
TEST_F(WorkerTimer, RoundTripsOfFloatsAreMeasured) {
    const std::size_t elements = bench.config.channel.payload_lanes();
    ASSERT_TRUE(bench.submit(std::vector<float>(elements * 2, 1e30F)).has_value());
    (void)bench.packets();
    bench.now += milliseconds(10);
    bench.handle(ack_caused_by(bench, 0, 1));
    EXPECT_GT(bench.worker.poll_timeout() - bench.now, milliseconds(5));
}

// Results arrive in bursts that are further apart than the timeout. No packet is lost, but the worker cannot measure a
// round trip.
TEST_F(WorkerTimer, RepeatedResultRaisesTheMinimumTimeout) {
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
TEST_F(WorkerTimer, LateResultWithoutAProbeRaisesTheMinimumTimeout) {
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
TEST_F(WorkerTimer, ResultDelayedByOtherWorkersKeepsTheMinimumTimeout) {
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

TEST_F(WorkerTimer, AnswerWithoutTheResultResetsTheMinimumTimeout) {
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

TEST_F(WorkerTimer, EarlyAndRepeatedTimeoutCallsDoNothing) {
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

TEST_F(WorkerTimer, TimeoutsWithoutTransmissionsQueueOneBurst) {
    send(16);
    for (int expiry = 0; expiry < 100; ++expiry) bench.expire();
    EXPECT_EQ(bench.packets().size(), 8U);
}

TEST_F(WorkerTimer, WorkerWithoutFragmentsInFlightHasNoTimer) {
    EXPECT_EQ(bench.worker.poll_timeout(), never);
    send(1);
    EXPECT_NE(bench.worker.poll_timeout(), never);
    ack(0);
    EXPECT_EQ(bench.worker.poll_timeout(), never);
}

}  // namespace
}  // namespace atp::protocol
