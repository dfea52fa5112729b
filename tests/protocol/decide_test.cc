// SPDX-License-Identifier: Apache-2.0
// Rules of the switch's decision that hold for many packets. Each other rule is a row of tests/conformance/decide.json,
// which decide_conformance_test checks.
#include "protocol/decide.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <utility>

#include "wire/check.h"

namespace atp::protocol {
namespace {

constexpr std::uint16_t lanes = 8;
constexpr std::uint32_t now_us = 5'000'000;
constexpr std::uint32_t ageing_us = 1'000'000;

struct Outcome {
    atp_header packet{};
    atp_aggregator aggregator{};
    atp_decision decision{};
};

Outcome decide(const atp_header& packet, const atp_aggregator& aggregator) {
    Outcome outcome{.packet = packet, .aggregator = aggregator};
    outcome.decision = atp_decide(&outcome.packet, lanes, 0, &outcome.aggregator, now_us, ageing_us);
    return outcome;
}

void expect_decision(const Outcome& outcome, unsigned packet, unsigned lanes_action, unsigned event) {
    EXPECT_EQ(outcome.decision.packet, packet);
    EXPECT_EQ(outcome.decision.lanes, lanes_action);
    EXPECT_EQ(outcome.decision.event, event);
}

// A switch of the level that is the test's parameter. At level 0 it serves unit 1 of three units. The unit has four
// members.
class Decide : public ::testing::TestWithParam<std::uint8_t> {
  protected:
    // A gradient of contributor `bit`: at level 0 member `bit` of unit 1, at level 1 the whole unit `bit`.
    [[nodiscard]] static atp_header gradient(unsigned bit) {
        const std::uint8_t hop = GetParam();
        atp_header packet{};
        packet.version = ATP_VERSION;
        packet.type = ATP_TYPE_GRADIENT;
        packet.hop = hop;
        packet.lanes = ATP_INT32_LANES;
        packet.window_log2 = 4;
        packet.job = 7;
        packet.token = 0x5eed;
        packet.channel = 3;
        packet.worker = static_cast<std::uint16_t>(bit);
        packet.seq = 40;
        packet.index = 11;
        packet.bitmap0 = hop == 0 ? 1U << bit : 0xf;
        packet.mask0 = 0xf;
        packet.bitmap1 = hop == 0 ? 0x2 : 1U << bit;
        packet.mask1 = 0x7;
        return packet;
    }
};

INSTANTIATE_TEST_SUITE_P(Level, Decide, ::testing::Values(std::uint8_t{0}, std::uint8_t{1}),
                         [](const auto& level) { return level.param == 0 ? "Zero" : "One"; });

TEST_P(Decide, H55_GradientIsAddedOnlyToLanesOfItsOwnForm) {
    const std::array forms{std::pair{ATP_INT32_LANES, 0U}, std::pair{ATP_INT16_LANES, unsigned{ATP_AGGREGATOR_INT16}},
                           std::pair{ATP_INT8_LANES, unsigned{ATP_AGGREGATOR_INT8}}};
    for (const auto& [held_lanes, flag] : forms) {
        atp_header first = gradient(0);
        first.lanes = static_cast<std::uint8_t>(held_lanes);
        const atp_aggregator held = decide(first, atp_aggregator{}).aggregator;
        EXPECT_EQ(held.flags, flag);
        for (unsigned lanes = 0x11; lanes <= 0x44; ++lanes) {
            atp_header other = gradient(1);
            other.lanes = static_cast<std::uint8_t>(lanes);
            if (atp_lanes_fit(&other, 3) == 0) continue;
            if (lanes == held_lanes) {
                expect_decision(decide(other, held), ATP_PACKET_DROP, ATP_LANES_ADD, ATP_EVENT_ADDED);
            } else {
                expect_decision(decide(other, held), ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_MISFIT);
                other.flags = ATP_FLAG_RESEND;
                const Outcome resent = decide(other, held);
                EXPECT_EQ(resent.decision.lanes, ATP_LANES_NONE) << lanes;
                EXPECT_EQ(resent.aggregator.bitmap, held.bitmap) << lanes;
            }
        }
    }
}

TEST_P(Decide, H64_JobAndTokenWithTheSameXorAreAnotherFragment) {
    const atp_aggregator held = decide(gradient(0), atp_aggregator{}).aggregator;
    for (const std::uint64_t change : {std::uint64_t{1}, std::uint64_t{1} << 31U, std::uint64_t{0x1234}}) {
        atp_header other = gradient(1);
        other.job ^= static_cast<std::uint32_t>(change);
        other.token ^= change;
        EXPECT_EQ(decide(other, held).decision.event, ATP_EVENT_COLLIDED);
        other.token ^= change | change << 32U;
        EXPECT_EQ(decide(other, held).decision.event, ATP_EVENT_COLLIDED);
    }
    for (unsigned bit = 0; bit < 64; ++bit) {
        atp_header other = gradient(1);
        other.token ^= std::uint64_t{1} << bit;
        EXPECT_EQ(decide(other, held).decision.event, ATP_EVENT_COLLIDED) << "bit " << bit;
    }
}

// decode() refuses such a packet, so no vector can hold it.
TEST_P(Decide, GradientWithoutMembersIsForwardedUnaggregated) {
    atp_header packet = gradient(1);
    packet.bitmap0 = 0;
    packet.bitmap1 = 0;
    const Outcome outcome = decide(packet, atp_aggregator{});
    expect_decision(outcome, ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_MISFIT);
    EXPECT_NE(outcome.packet.flags & ATP_FLAG_BYPASS, 0);
}

}  // namespace
}  // namespace atp::protocol
