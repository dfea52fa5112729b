// SPDX-License-Identifier: Apache-2.0
#include "sim/link.h"

#include <gtest/gtest.h>

namespace atp::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr LinkConfig gigabit{.rate_bits_per_s = 1'000'000'000, .delay = microseconds(3), .faulty = true};

TEST(Link, PacketTakesItsSerialisationAndTheDelay) {
    Link link({}, gigabit);
    EXPECT_EQ(link.enqueue(1000, Time()).arrival, Time(microseconds(8 + 3)));
}

TEST(Link, PacketsQueueAndTheQueueDrains) {
    Link link({}, gigabit);
    EXPECT_EQ(link.enqueue(1000, Time()).arrival, Time(microseconds(11)));
    EXPECT_EQ(link.enqueue(500, Time()).arrival, Time(microseconds(15)));
    EXPECT_EQ(link.enqueue(500, Time(microseconds(100))).arrival, Time(microseconds(107)));
    EXPECT_EQ(link.counters().bytes, 2000U);
}

TEST(Link, TokensOfAPauseLetABurstPassAtOnceAndNoMore) {
    LinkConfig config = gigabit;
    config.burst_bytes = 2000;
    config.queue_bytes = 1500;
    Link link({}, config);
    const Time after_pause = Time(microseconds(100));
    EXPECT_EQ(link.enqueue(1500, after_pause).arrival, Time(microseconds(103)));
    EXPECT_EQ(link.enqueue(1000, after_pause).arrival, Time(microseconds(100 + 4 + 3)));  // 500 bytes lack tokens
    EXPECT_FALSE(link.enqueue(500, after_pause).dropped);                                 // only 500 bytes wait
    EXPECT_TRUE(link.enqueue(600, after_pause).dropped);
    EXPECT_EQ(link.enqueue(1000, Time(microseconds(108 + 8))).arrival, Time(microseconds(116 + 3)));
}

TEST(Link, PacketBeyondTheQueueIsDroppedAndTakesNoTime) {
    LinkConfig config = gigabit;
    config.queue_bytes = 2500;
    Link link({}, config);
    EXPECT_FALSE(link.enqueue(1000, Time()).dropped);
    EXPECT_FALSE(link.enqueue(1000, Time()).dropped);
    EXPECT_TRUE(link.enqueue(1000, Time()).dropped);
    EXPECT_FALSE(link.enqueue(500, Time()).dropped);
    // After 8 us one packet has left, and its space is free.
    EXPECT_FALSE(link.enqueue(1000, Time(microseconds(8))).dropped);
    EXPECT_EQ(link.counters().dropped, 1U);
    EXPECT_EQ(link.counters().bytes, 3500U);
}

TEST(Link, PacketThatFindsMoreThanTheThresholdIsMarked) {
    LinkConfig config = gigabit;
    config.ecn_bytes = 1000;
    Link link({}, config);
    EXPECT_FALSE(link.enqueue(1000, Time()).marked);
    EXPECT_FALSE(link.enqueue(1000, Time()).marked);  // exactly at the threshold
    EXPECT_TRUE(link.enqueue(1000, Time()).marked);
    EXPECT_FALSE(link.enqueue(1000, Time(microseconds(24))).marked);
    EXPECT_EQ(link.counters().marked, 1U);
}

TEST(Link, ThousandPacketsAt100GbpsDepartWithoutRounding) {
    Link link({}, {.rate_bits_per_s = 100'000'000'000, .delay = nanoseconds(0)});
    Time last;
    for (int i = 0; i < 1000; ++i) last = link.enqueue(362, Time()).arrival;
    EXPECT_EQ(last, Time(nanoseconds(28'960)));  // 362 bytes are 28.96 ns: rounding each would give 29,000
}

TEST(Link, LinkWithoutARateTakesNoTime) {
    Link link({}, {});
    EXPECT_EQ(link.enqueue(1'000'000, Time(microseconds(1))).arrival, Time(microseconds(1)));
}

}  // namespace
}  // namespace atp::sim
