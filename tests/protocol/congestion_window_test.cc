// SPDX-License-Identifier: Apache-2.0
#include "protocol/congestion_window.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <vector>

namespace atp::protocol {
namespace {

constexpr std::uint32_t papers_packet_bytes = 306;

constexpr std::uint32_t usual_packet_bytes = 1464;

TEST(CongestionWindow, StartsAt61200BytesButAtMostAtTheSlots) {
    EXPECT_EQ(CongestionWindow({}, papers_packet_bytes, 1024).window_packets(), 200U);
    EXPECT_EQ(CongestionWindow({}, papers_packet_bytes, 64).window_packets(), 64U);
    EXPECT_EQ(CongestionWindow({}, usual_packet_bytes, 128).window_packets(), 41U);
}

TEST(CongestionWindow, FirstWindowIsSharedByTheChannelsOfAJob) {
    EXPECT_EQ(CongestionWindow({.channels = 4}, usual_packet_bytes, 128).window_packets(), 10U);
    EXPECT_EQ(CongestionWindow({.channels = 64}, usual_packet_bytes, 128).window_packets(), 2U);
    EXPECT_EQ(CongestionWindow({.channels = 4}, 65'496, 8).window_packets(), 2U) << "two of the longest packets";
    EXPECT_EQ(CongestionWindow({.channels = 4}, usual_packet_bytes, 1).window_packets(), 1U) << "no more than slots";
    EXPECT_EQ(CongestionWindow({.channels = 0}, usual_packet_bytes, 128).window_packets(), 41U);
}

TEST(CongestionWindow, StartsAtTheConfiguredPacketsIfThereAreAny) {
    EXPECT_EQ(CongestionWindow({.channels = 4, .initial_packets = 1}, usual_packet_bytes, 128).window_packets(), 1U);
    EXPECT_EQ(CongestionWindow({.initial_packets = 90}, usual_packet_bytes, 64).window_packets(), 64U);
}

TEST(CongestionWindow, DoublesPerRoundTripUntilItsLargest) {
    CongestionWindow window({.channels = 4}, usual_packet_bytes, 128);
    for (const std::uint32_t expected : {20U, 40U, 80U, 128U, 128U}) {
        for (std::uint32_t ack = window.window_packets(); ack > 0; --ack) window.on_ack();
        EXPECT_NEAR(window.window_packets(), expected, 3) << "1,500 B for each packet of 1,464 B";
    }
}

TEST(CongestionWindow, GrowsByOneMtuPerAckBelowTheThreshold) {
    CongestionWindow window({.initial_packets = 10}, 300, 1000);
    window.on_ack();
    EXPECT_EQ(window.window_packets(), 15U);  // 1,500 B are five packets of 300 B
    window.on_ack();
    EXPECT_EQ(window.window_packets(), 20U);
}

TEST(CongestionWindow, GrowsByAtLeastOnePacketIfPacketsExceedTheStep) {
    CongestionWindow window({.initial_packets = 1, .step_bytes = 1500}, 9000, 16);
    window.on_ack();
    EXPECT_EQ(window.window_packets(), 2U);
}

TEST(CongestionWindow, HalvesOnCongestion) {
    CongestionWindow window({.initial_packets = 100}, 300, 1000);
    window.on_congestion();
    EXPECT_EQ(window.window_packets(), 50U);
    window.on_congestion();
    EXPECT_EQ(window.window_packets(), 25U);
}

TEST(CongestionWindow, GrowsByOneMtuPerWindowAfterCongestion) {
    CongestionWindow window({.initial_packets = 200}, 300, 1000);
    window.on_congestion();
    ASSERT_EQ(window.window_packets(), 100U);
    for (int ack = 0; ack < 100; ++ack) window.on_ack();
    EXPECT_NEAR(window.window_packets(), 105, 1);  // one window of ACKs added five packets of 300 B
}

TEST(CongestionWindow, StaysBetweenOnePacketAndAllSlots) {
    CongestionWindow window({.initial_packets = 8}, 300, 16);
    for (int i = 0; i < 100; ++i) window.on_ack();
    EXPECT_EQ(window.window_packets(), 16U);
    for (int i = 0; i < 100; ++i) window.on_congestion();
    EXPECT_EQ(window.window_packets(), 1U);
}

TEST(CongestionWindow, StaysAboveTheLeast) {
    CongestionWindow window({.initial_packets = 16, .least_packets = 6}, 300, 16);
    EXPECT_FALSE(window.is_fixed());
    for (const std::uint32_t expected : {8U, 6U, 6U}) {
        window.on_congestion();
        EXPECT_EQ(window.window_packets(), expected);
    }
    EXPECT_TRUE(CongestionWindow({.least_packets = UINT32_MAX}, 300, 16).is_fixed());
}

TEST(CongestionWindow, SingleSlotKeepsAWindowOfOne) {
    CongestionWindow window({}, 300, 1);
    window.on_congestion();
    window.on_ack();
    EXPECT_EQ(window.window_packets(), 1U);
}

RC_GTEST_PROP(CongestionWindow, AckGrowsAndCongestionHalvesWithinTheBounds, (const std::vector<bool>& acks)) {
    const auto packet_bytes = *rc::gen::inRange<std::uint32_t>(52, 65507);
    const auto slots = *rc::gen::inRange<std::uint32_t>(1, 1U << 16U);
    const auto initial = *rc::gen::inRange<std::uint32_t>(0, 100'000);
    CongestionWindow window({.initial_packets = initial}, packet_bytes, slots);
    std::uint32_t last = window.window_packets();
    for (const bool ack : acks) {
        ack ? window.on_ack() : window.on_congestion();
        const std::uint32_t now = window.window_packets();
        RC_ASSERT(now >= 1U && now <= slots);
        RC_ASSERT((ack ? now >= last : now <= last));
        if (!ack) RC_ASSERT(now >= last / 2);
        last = now;
    }
}

// All workers receive the same ACKs and must have equal windows. The window therefore depends only on ACKs, and not,
// for example, on the rank.
RC_GTEST_PROP(CongestionWindow, EqualEventsGiveEqualWindows, (const std::vector<bool>& acks)) {
    CongestionWindow one({}, papers_packet_bytes, 256);
    CongestionWindow other({}, papers_packet_bytes, 256);
    for (const bool ack : acks) {
        ack ? one.on_ack() : one.on_congestion();
        ack ? other.on_ack() : other.on_congestion();
        RC_ASSERT(one.window_packets() == other.window_packets());
    }
}

TEST(CongestionWindow, ChannelsGrowTogetherAsFastAsOne) {
    constexpr std::uint32_t packet_bytes = 1500;
    const auto grown_after = [](std::uint32_t channels, unsigned acks) {
        CongestionWindow window({.channels = channels, .initial_packets = 32}, packet_bytes, 1000);
        window.on_congestion();
        for (unsigned i = 0; i < acks; ++i) window.on_ack();
        return window.window_packets() - 16;
    };
    EXPECT_EQ(grown_after(1, 17 * 4), 3U);
    EXPECT_EQ(grown_after(4, 17 * 4), 1U);
}

}  // namespace
}  // namespace atp::protocol
