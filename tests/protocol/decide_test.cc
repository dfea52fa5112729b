// SPDX-License-Identifier: Apache-2.0
// Each rule of the switch's decision, at both levels. tests/conformance/decide.json has the same decisions as data for
// other implementations.
#include "protocol/decide.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "wire/check.h"

namespace atp::protocol {
namespace {

constexpr std::uint16_t lanes = 8;
constexpr std::uint32_t now_us = 5'000'000;
constexpr std::uint32_t ageing_us = 1'000'000;
constexpr std::uint32_t window = 16;

struct Outcome {
    atp_header packet{};
    atp_aggregator aggregator{};
    atp_decision decision{};
};

// A switch of the level that is the test's parameter. At level 0 it serves unit 1 of three units. The unit has four
// members.
class Decide : public ::testing::TestWithParam<std::uint8_t> {
  protected:
    [[nodiscard]] static std::uint8_t hop() { return GetParam(); }

    // A gradient of contributor `bit`: at level 0 member `bit` of unit 1, at level 1 the whole unit `bit`.
    [[nodiscard]] static atp_header gradient(unsigned bit, std::uint32_t seq = 40) {
        atp_header packet{};
        packet.version = ATP_VERSION;
        packet.type = ATP_TYPE_GRADIENT;
        packet.hop = hop();
        packet.lanes = ATP_INT32_LANES;
        packet.window_log2 = 4;
        packet.job = 7;
        packet.token = 0x5eed;
        packet.channel = 3;
        packet.worker = static_cast<std::uint16_t>(bit);
        packet.seq = seq;
        packet.index = 11;
        packet.bitmap0 = hop() == 0 ? 1U << bit : 0xf;
        packet.mask0 = 0xf;
        packet.bitmap1 = hop() == 0 ? 0x2 : 1U << bit;
        packet.mask1 = 0x7;
        return packet;
    }
    [[nodiscard]] static std::uint32_t full_mask() { return hop() == 0 ? 0xf : 0x7; }

    // An aggregator that holds the gradients of the contributors in `bitmap` for fragment `seq`, touched just now.
    [[nodiscard]] static atp_aggregator holding(std::uint32_t bitmap, std::uint32_t seq = 40) {
        atp_aggregator aggregator{};
        aggregator.job = 7;
        aggregator.token = 0x5eed;
        aggregator.seq = seq;
        aggregator.channel = 3;
        aggregator.status = bitmap == full_mask() ? ATP_AGGREGATOR_COMPLETE : ATP_AGGREGATOR_GATHERING;
        aggregator.bitmap = bitmap;
        aggregator.lanes = lanes;
        aggregator.unit = hop() == 0 ? 0x2 : 0;
        aggregator.touched_us = now_us;
        return aggregator;
    }
    // A free aggregator whose tombstone is fragment `seq`.
    [[nodiscard]] static atp_aggregator remembering(std::uint32_t seq = 40) {
        atp_aggregator aggregator = holding(full_mask(), seq);
        aggregator.status = ATP_AGGREGATOR_FREE;
        return aggregator;
    }
    [[nodiscard]] static atp_aggregator of_another_job(std::uint32_t touched_us = now_us) {
        atp_aggregator aggregator = holding(0x1);
        aggregator.job = 8;
        aggregator.touched_us = touched_us;
        return aggregator;
    }

    [[nodiscard]] static atp_header down(atp_type type, std::uint16_t flags = 0) {
        atp_header packet = gradient(0);
        packet.type = static_cast<std::uint8_t>(type);
        packet.flags = flags;
        packet.hop = 0;
        return packet;
    }
    [[nodiscard]] static atp_header flush() {
        atp_header packet = gradient(0);
        packet.type = ATP_TYPE_FLUSH;
        packet.lanes = ATP_DTYPE_NONE;
        packet.bitmap0 = 0;
        return packet;
    }

    [[nodiscard]] static Outcome decide(const atp_header& packet, const atp_aggregator& aggregator,
                                        bool flush_here = false, std::uint16_t packet_lanes = lanes) {
        Outcome outcome{.packet = packet, .aggregator = aggregator};
        outcome.decision =
            atp_decide(&outcome.packet, packet_lanes, flush_here ? 1 : 0, &outcome.aggregator, now_us, ageing_us);
        return outcome;
    }

    static void expect_decision(const Outcome& outcome, unsigned packet, unsigned lanes_action, unsigned event) {
        EXPECT_EQ(outcome.decision.packet, packet);
        EXPECT_EQ(outcome.decision.lanes, lanes_action);
        EXPECT_EQ(outcome.decision.event, event);
    }
    static std::span<const std::byte> bytes_of(const atp_aggregator& aggregator) {
        return std::as_bytes(std::span(&aggregator, 1));
    }
    static void expect_untouched(const Outcome& outcome, const atp_aggregator& before) {
        EXPECT_TRUE(std::ranges::equal(bytes_of(outcome.aggregator), bytes_of(before))) << "the aggregator changed";
    }
    static void expect_unchanged(const Outcome& outcome, const atp_header& before) {
        EXPECT_EQ(std::memcmp(&outcome.packet, &before, sizeof before), 0) << "the packet changed";
    }
    // Expects that the switch forwards the gradient and marks it so that no other switch adds it.
    static void expect_sent_alone(const Outcome& outcome, unsigned event) {
        expect_decision(outcome, ATP_PACKET_FORWARD, ATP_LANES_NONE, event);
        EXPECT_NE(outcome.packet.flags & ATP_FLAG_BYPASS, 0);
        EXPECT_EQ(outcome.packet.hop, hop() + 1);
    }
};

INSTANTIATE_TEST_SUITE_P(Level, Decide, ::testing::Values(std::uint8_t{0}, std::uint8_t{1}),
                         [](const auto& level) { return level.param == 0 ? "Zero" : "One"; });

// Cases that exist at one level only.
class DecideAtLevelZero : public Decide {};
INSTANTIATE_TEST_SUITE_P(Level, DecideAtLevelZero, ::testing::Values(std::uint8_t{0}));
class DecideAtLevelOne : public Decide {};
INSTANTIATE_TEST_SUITE_P(Level, DecideAtLevelOne, ::testing::Values(std::uint8_t{1}));

// --- int16 lanes

atp_header of_shorts(atp_header packet) {
    packet.lanes = ATP_INT16_LANES;
    return packet;
}

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
    const atp_aggregator held = holding(0x1);
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

TEST_P(Decide, MarksOfBothDirectionsStayApart) {
    atp_header down_mark = gradient(0);
    down_mark.flags = ATP_FLAG_ECN_DOWN;
    atp_aggregator state = decide(down_mark, atp_aggregator{}).aggregator;
    EXPECT_EQ(state.flags, ATP_AGGREGATOR_ECN_DOWN);
    atp_header up_mark = gradient(1);
    up_mark.flags = ATP_FLAG_ECN;
    const Outcome added = decide(up_mark, state);
    EXPECT_EQ(added.aggregator.flags, ATP_AGGREGATOR_ECN_DOWN | ATP_AGGREGATOR_ECN);
    state.bitmap = full_mask() & ~0x2U;
    const Outcome completed = decide(gradient(1), state);
    EXPECT_EQ(completed.packet.flags & (ATP_FLAG_ECN | ATP_FLAG_ECN_DOWN), ATP_FLAG_ECN_DOWN);
}

TEST_P(Decide, Int16GradientIsAddedOnlyToInt16Lanes) {
    const atp_aggregator int16_lanes = decide(of_shorts(gradient(0)), atp_aggregator{}).aggregator;
    EXPECT_EQ(int16_lanes.flags, ATP_AGGREGATOR_INT16);
    expect_decision(decide(of_shorts(gradient(1)), int16_lanes), ATP_PACKET_DROP, ATP_LANES_ADD, ATP_EVENT_ADDED);
    expect_decision(decide(gradient(1), int16_lanes), ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_MISFIT);
    expect_decision(decide(of_shorts(gradient(1)), holding(0x1)), ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_MISFIT);
}

TEST_P(Decide, FlushReturnsInt16LanesWithTheirScale) {
    atp_aggregator before = holding(0x1);
    before.flags = ATP_AGGREGATOR_INT16;
    atp_header packet = flush();
    packet.scale = 140;
    const Outcome outcome = decide(packet, before, true);
    expect_decision(outcome, ATP_PACKET_RETURN, ATP_LANES_EMIT, ATP_EVENT_FLUSHED);
    EXPECT_EQ(outcome.packet.lanes, ATP_INT16_LANES);
    EXPECT_EQ(outcome.packet.scale, 140);
    EXPECT_EQ(outcome.packet.flags & ATP_FLAG_RESEND, 0);
}

// --- gradients: claim, add, complete

TEST_P(Decide, FirstGradientClaimsAFreeAggregatorAndIsAbsorbed) {
    atp_header packet = gradient(2);
    packet.flags = ATP_FLAG_ECN | ATP_FLAG_AUDIT | ATP_FLAG_PLAIN;
    const Outcome outcome = decide(packet, atp_aggregator{});
    expect_decision(outcome, ATP_PACKET_DROP, ATP_LANES_STORE, ATP_EVENT_CLAIMED);
    EXPECT_EQ(outcome.aggregator.status, ATP_AGGREGATOR_GATHERING);
    EXPECT_EQ(outcome.aggregator.job, 7U);
    EXPECT_EQ(outcome.aggregator.token, 0x5eedU);
    EXPECT_EQ(outcome.aggregator.channel, 3U);
    EXPECT_EQ(outcome.aggregator.seq, 40U);
    EXPECT_EQ(outcome.aggregator.bitmap, 0x4U);
    EXPECT_EQ(outcome.aggregator.unit, hop() == 0 ? 0x2U : 0U);
    EXPECT_EQ(outcome.aggregator.lanes, lanes);
    EXPECT_EQ(outcome.aggregator.flags, ATP_FLAG_ECN | ATP_FLAG_AUDIT | ATP_FLAG_PLAIN);
    EXPECT_EQ(outcome.aggregator.touched_us, now_us);
}

TEST_P(Decide, FurtherGradientIsAddedAndAbsorbed) {
    atp_aggregator before = holding(0x1);
    before.touched_us = now_us - 77;
    const Outcome outcome = decide(gradient(1), before);
    expect_decision(outcome, ATP_PACKET_DROP, ATP_LANES_ADD, ATP_EVENT_ADDED);
    EXPECT_EQ(outcome.aggregator.bitmap, 0x3U);
    EXPECT_EQ(outcome.aggregator.touched_us, now_us) << "an addition renews the age";
}

TEST_P(Decide, MarksOfAnAbsorbedGradientAreKept) {
    atp_header packet = gradient(1);
    packet.flags = ATP_FLAG_ECN | ATP_FLAG_OVERFLOW;
    const Outcome outcome = decide(packet, holding(0x1));
    EXPECT_EQ(outcome.aggregator.flags, ATP_FLAG_ECN | ATP_FLAG_OVERFLOW);
}

TEST_P(Decide, LastGradientLeavesWithTheSumAndTheAggregatorIsKept) {
    atp_aggregator before = holding(full_mask() & ~0x2U);
    before.flags = ATP_FLAG_ECN | ATP_FLAG_OVERFLOW;
    const Outcome outcome = decide(gradient(1), before);
    expect_decision(outcome, ATP_PACKET_FORWARD, ATP_LANES_ADD_EMIT, ATP_EVENT_COMPLETED);
    EXPECT_EQ(outcome.aggregator.status, ATP_AGGREGATOR_COMPLETE);
    EXPECT_EQ(outcome.packet.hop, hop() + 1);
    EXPECT_EQ(hop() == 0 ? outcome.packet.bitmap0 : outcome.packet.bitmap1, full_mask());
    EXPECT_EQ((outcome.packet.flags & ATP_FLAG_WHOLE) != 0, hop() == 1);
    EXPECT_EQ(outcome.packet.flags & (ATP_FLAG_ECN | ATP_FLAG_OVERFLOW), ATP_FLAG_ECN | ATP_FLAG_OVERFLOW);
    EXPECT_EQ(outcome.packet.flags & ATP_FLAG_BYPASS, 0) << "the next level may add the sum";
}

TEST_P(Decide, CompleteSetIsForwardedWithoutAnAggregator) {
    atp_header packet = gradient(0);
    (hop() == 0 ? packet.mask0 : packet.mask1) = 0x1;
    packet.bitmap0 = packet.mask0;
    const atp_aggregator before = of_another_job();
    const Outcome outcome = decide(packet, before);
    expect_decision(outcome, ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_SINGLE);
    EXPECT_EQ(outcome.packet.hop, hop() + 1);
    EXPECT_EQ(outcome.packet.flags & (ATP_FLAG_BYPASS | ATP_FLAG_COLLISION), 0);
    expect_untouched(outcome, before);
}

// --- duplicates

TEST_P(Decide, DuplicateIsAbsorbedAndItsCongestionIsKept) {
    atp_header packet = gradient(1);
    packet.flags = ATP_FLAG_ECN;
    const atp_aggregator before = holding(0x3);
    const Outcome outcome = decide(packet, before);
    expect_decision(outcome, ATP_PACKET_DROP, ATP_LANES_NONE, ATP_EVENT_DUPLICATE);
    EXPECT_EQ(outcome.aggregator.bitmap, before.bitmap);
    EXPECT_EQ(outcome.aggregator.flags, ATP_FLAG_ECN);
}

TEST_P(Decide, DuplicateAfterCompletionRepeatsTheSum) {
    atp_aggregator before = holding(full_mask());
    before.flags = ATP_FLAG_OVERFLOW;
    const Outcome outcome = decide(gradient(1), before);
    expect_decision(outcome, ATP_PACKET_FORWARD, ATP_LANES_EMIT, ATP_EVENT_REEMITTED);
    EXPECT_EQ(hop() == 0 ? outcome.packet.bitmap0 : outcome.packet.bitmap1, full_mask());
    EXPECT_NE(outcome.packet.flags & ATP_FLAG_OVERFLOW, 0);
    EXPECT_EQ(outcome.packet.hop, hop() + 1);
    EXPECT_EQ(outcome.aggregator.status, ATP_AGGREGATOR_COMPLETE);
}

TEST_P(Decide, DuplicateDoesNotRenewTheAge) {
    atp_aggregator before = holding(0x3);
    before.touched_us = now_us - 500;
    EXPECT_EQ(decide(gradient(1), before).aggregator.touched_us, now_us - 500);
}

// --- other fragments in the aggregator

TEST_P(Decide, GradientOnTheAggregatorOfAnotherJobIsForwardedUnaggregated) {
    const atp_aggregator before = of_another_job();
    const Outcome outcome = decide(gradient(1), before);
    expect_sent_alone(outcome, ATP_EVENT_COLLIDED);
    EXPECT_NE(outcome.packet.flags & ATP_FLAG_COLLISION, 0);
    expect_untouched(outcome, before);
}

TEST_P(Decide, EachPartOfTheIdentityDistinguishesFragments) {
    for (int part = 0; part < 4; ++part) {
        atp_aggregator other = holding(0x1);
        if (part == 0) other.job ^= 1;
        if (part == 1) other.token ^= 1;
        if (part == 2) other.channel ^= 1;
        if (part == 3) other.seq += 1;
        SCOPED_TRACE(part);
        expect_sent_alone(decide(gradient(1), other), ATP_EVENT_COLLIDED);
        expect_untouched(decide(gradient(1), other), other);
    }
}

TEST_P(Decide, AbandonedAggregatorIsTakenOver) {
    const Outcome outcome = decide(gradient(1), of_another_job(now_us - ageing_us - 1));
    expect_decision(outcome, ATP_PACKET_DROP, ATP_LANES_STORE, ATP_EVENT_TAKEN_OVER);
    EXPECT_EQ(outcome.aggregator.job, 7U);
    EXPECT_EQ(outcome.aggregator.bitmap, 0x2U);
    EXPECT_EQ(outcome.aggregator.status, ATP_AGGREGATOR_GATHERING);
}

TEST_P(Decide, AggregatorAsOldAsTheAgeingTimeIsKept) {
    expect_sent_alone(decide(gradient(1), of_another_job(now_us - ageing_us)), ATP_EVENT_COLLIDED);
}

TEST_P(Decide, AggregatorTouchedInTheFutureIsKept) {
    expect_sent_alone(decide(gradient(1), of_another_job(now_us + 1)), ATP_EVENT_COLLIDED);
}

TEST_P(Decide, AgeIsMeasuredAcrossTheWrapOfTheClock) {
    Outcome outcome{.packet = gradient(1), .aggregator = of_another_job(0xffffff00U)};
    outcome.decision = atp_decide(&outcome.packet, lanes, 0, &outcome.aggregator, 0x200, 0x2ff);
    EXPECT_EQ(outcome.decision.event, ATP_EVENT_TAKEN_OVER);
}

TEST_P(Decide, PredecessorOneWindowBehindIsSuperseded) {
    const Outcome outcome = decide(gradient(1, 40 + window), holding(0x3, 40));
    expect_decision(outcome, ATP_PACKET_DROP, ATP_LANES_STORE, ATP_EVENT_SUPERSEDED);
    EXPECT_EQ(outcome.aggregator.seq, 40 + window);
    EXPECT_EQ(outcome.aggregator.bitmap, 0x2U);
}

TEST_P(Decide, PredecessorIsSupersededAcrossTheWrapOfTheSequence) {
    const Outcome outcome = decide(gradient(1, 3), holding(0x3, 3 - window));
    EXPECT_EQ(outcome.decision.event, ATP_EVENT_SUPERSEDED);
}

TEST_P(Decide, PredecessorLessThanAWindowBehindIsKept) {
    expect_sent_alone(decide(gradient(1, 40 + window - 1), holding(0x3, 40)), ATP_EVENT_COLLIDED);
}

TEST_P(Decide, GradientOlderThanTheAggregatorsFragmentIsForwarded) {
    const atp_aggregator before = holding(0x3, 40 + window);
    const Outcome outcome = decide(gradient(1, 40), before);
    expect_sent_alone(outcome, ATP_EVENT_COLLIDED);
    expect_untouched(outcome, before);
}

TEST_P(Decide, PredecessorOfAnotherIncarnationIsKept) {
    atp_aggregator before = holding(0x3, 40);
    before.token ^= 1;
    expect_sent_alone(decide(gradient(1, 40 + window), before), ATP_EVENT_COLLIDED);
}

// --- tombstone

TEST_P(Decide, LateGradientOfAReleasedFragmentIsForwarded) {
    const atp_aggregator before = remembering();
    const Outcome outcome = decide(gradient(1), before);
    expect_sent_alone(outcome, ATP_EVENT_LATE);
    EXPECT_EQ(outcome.packet.flags & ATP_FLAG_COLLISION, 0) << "no other fragment holds the aggregator";
    expect_untouched(outcome, before);
}

TEST_P(Decide, TombstoneDoesNotPreventClaimsOfOtherFragments) {
    EXPECT_EQ(decide(gradient(1, 41), remembering()).decision.event, ATP_EVENT_CLAIMED);
    atp_header other = gradient(1);
    other.job = 9;
    EXPECT_EQ(decide(other, remembering()).decision.event, ATP_EVENT_CLAIMED);
}

// --- gradients that cannot be added

TEST_P(Decide, BypassPassesUnchangedForAnyAggregator) {
    atp_header packet = gradient(1);
    packet.flags = ATP_FLAG_BYPASS | ATP_FLAG_RESEND;
    for (const atp_aggregator& before : {atp_aggregator{}, holding(0x1), holding(full_mask()), of_another_job(0)}) {
        const Outcome outcome = decide(packet, before);
        expect_decision(outcome, ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_BYPASSED);
        expect_unchanged(outcome, packet);
        expect_untouched(outcome, before);
    }
}

TEST_P(Decide, GradientPastTheLastLevelPassesUnchanged) {
    atp_header packet = gradient(1);
    packet.hop = ATP_LEVELS;
    const Outcome outcome = decide(packet, atp_aggregator{});
    expect_decision(outcome, ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_BYPASSED);
    expect_unchanged(outcome, packet);
}

TEST_P(Decide, FloatsAreForwardedUnaggregated) {
    atp_header packet = gradient(1);
    packet.lanes = ATP_FLOAT32_LANES;
    for (const atp_aggregator& before : {atp_aggregator{}, holding(0x1)}) {
        const Outcome outcome = decide(packet, before);
        expect_sent_alone(outcome, ATP_EVENT_MISFIT);
        expect_untouched(outcome, before);
    }
}

TEST_P(Decide, GradientWithOtherLanesIsForwardedUnaggregated) {
    const atp_aggregator before = holding(0x1);
    const Outcome outcome = decide(gradient(1), before, false, lanes - 1);
    expect_sent_alone(outcome, ATP_EVENT_MISFIT);
    expect_untouched(outcome, before);
}

TEST_P(Decide, GradientOfAnotherPurposeIsForwardedUnaggregated) {
    const atp_aggregator before = holding(0x1);
    atp_header packet = gradient(1);
    packet.argument = 9;
    const Outcome outcome = decide(packet, before);
    expect_sent_alone(outcome, ATP_EVENT_MISFIT);
    expect_untouched(outcome, before);
}

TEST_P(Decide, PurposeIsKeptAndReturnedWithAFlush) {
    atp_header packet = gradient(0);
    packet.argument = 0x1234;
    const atp_aggregator held = decide(packet, atp_aggregator{}).aggregator;
    EXPECT_EQ(held.purpose, 0x1234U);
    EXPECT_EQ(decide(flush(), held, true).packet.argument, 0x1234U);
}

TEST_P(Decide, ResendOfAnotherPurposeKeepsThePartialSum) {
    const atp_aggregator before = holding(0x1);
    atp_header packet = gradient(1);
    packet.argument = 9;
    packet.flags = ATP_FLAG_RESEND;
    const Outcome outcome = decide(packet, before);
    expect_decision(outcome, ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_RESENT);
    expect_untouched(outcome, before);
}

TEST_P(Decide, ShortFragmentClaimsTheAggregatorOfALongerOne) {
    const Outcome outcome = decide(gradient(1), remembering(39), false, 1);
    expect_decision(outcome, ATP_PACKET_DROP, ATP_LANES_STORE, ATP_EVENT_CLAIMED);
    EXPECT_EQ(outcome.aggregator.lanes, 1);
}

TEST_P(Decide, GradientOfAnotherLevelIsForwardedUnaggregated) {
    atp_aggregator before = holding(0x1);
    before.unit = hop() == 0 ? 0 : 0x2;
    const Outcome outcome = decide(gradient(1), before);
    expect_sent_alone(outcome, ATP_EVENT_MISFIT);
    expect_untouched(outcome, before);
}

TEST_P(Decide, MaskThatLacksAnAddedMemberFetchesNothing) {
    const auto with_mask = [](atp_header packet) {
        (hop() == 0 ? packet.mask0 : packet.mask1) = 0x6;
        (hop() == 0 ? packet.bitmap0 : packet.bitmap1) &= 0x6U;
        return packet;
    };
    const atp_aggregator before = holding(0x1);
    const Outcome added = decide(with_mask(gradient(1)), before);
    expect_sent_alone(added, ATP_EVENT_MISFIT);
    expect_untouched(added, before);
    const Outcome flushed = decide(with_mask(flush()), before, true);
    expect_decision(flushed, ATP_PACKET_DROP, ATP_LANES_NONE, ATP_EVENT_PASSED);
    expect_untouched(flushed, before);
}

TEST_P(Decide, AuditedGradientIsForwardedIfThePartialSumIsUnaudited) {
    atp_header packet = gradient(1);
    packet.flags = ATP_FLAG_AUDIT;
    expect_sent_alone(decide(packet, holding(0x1)), ATP_EVENT_MISFIT);
}

TEST_P(Decide, PlainAndScaledGradientsAreNotAddedToEachOther) {
    const atp_aggregator scaled = holding(0x1);
    atp_aggregator plain = holding(0x1);
    plain.flags = ATP_FLAG_PLAIN;
    atp_header plain_packet = gradient(1);
    plain_packet.flags = ATP_FLAG_PLAIN;
    const Outcome among_scaled = decide(plain_packet, scaled);
    expect_sent_alone(among_scaled, ATP_EVENT_MISFIT);
    expect_untouched(among_scaled, scaled);
    const Outcome among_plain = decide(gradient(1), plain);
    expect_sent_alone(among_plain, ATP_EVENT_MISFIT);
    expect_untouched(among_plain, plain);
}

TEST_P(Decide, CompleteSumKeepsThePlainFlag) {
    atp_aggregator before = holding(full_mask() & ~0x2U);
    before.flags = ATP_FLAG_PLAIN;
    atp_header packet = gradient(1);
    packet.flags = ATP_FLAG_PLAIN;
    const Outcome outcome = decide(packet, before);
    EXPECT_EQ(outcome.decision.event, ATP_EVENT_COMPLETED);
    EXPECT_NE(outcome.packet.flags & ATP_FLAG_PLAIN, 0);
}

TEST_P(DecideAtLevelZero, GradientOfAnotherUnitIsForwardedUnaggregated) {
    atp_aggregator before = holding(0x1);
    before.unit = 0x4;
    const Outcome outcome = decide(gradient(1), before);
    expect_sent_alone(outcome, ATP_EVENT_MISFIT);
    expect_untouched(outcome, before);
}

TEST_P(Decide, SetThatOverlapsThePartialSumIsForwardedUnaggregated) {
    atp_header packet = gradient(1);
    packet.flags = ATP_FLAG_WHOLE;
    (hop() == 0 ? packet.bitmap0 : packet.bitmap1) = 0x3;
    const atp_aggregator before = holding(0x1);
    const Outcome outcome = decide(packet, before);
    expect_sent_alone(outcome, ATP_EVENT_MISFIT);
    expect_untouched(outcome, before);
}

TEST_P(DecideAtLevelOne, PartOfAUnitIsForwardedUnaggregated) {
    atp_header packet = gradient(1);
    packet.bitmap0 = 0x7;
    for (const atp_aggregator& before : {atp_aggregator{}, holding(0x1)}) {
        const Outcome outcome = decide(packet, before);
        expect_sent_alone(outcome, ATP_EVENT_MISFIT);
        expect_untouched(outcome, before);
    }
}

TEST_P(Decide, GradientWithoutMembersIsForwardedUnaggregated) {
    atp_header packet = gradient(1);
    packet.bitmap0 = 0;
    packet.bitmap1 = 0;
    expect_sent_alone(decide(packet, atp_aggregator{}), ATP_EVENT_MISFIT);
}

// --- resends

TEST_P(Decide, ResendOnAFreeAggregatorIsForwardedAndLeavesATombstone) {
    atp_header packet = gradient(1);
    packet.flags = ATP_FLAG_RESEND;
    const Outcome outcome = decide(packet, atp_aggregator{});
    expect_decision(outcome, ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_RESENT);
    EXPECT_EQ(outcome.packet.hop, hop() + 1);
    EXPECT_EQ(outcome.aggregator.status, ATP_AGGREGATOR_FREE);
    EXPECT_EQ(decide(gradient(2), outcome.aggregator).decision.event, ATP_EVENT_LATE);
}

TEST_P(Decide, ResendOnTheAggregatorOfAnotherFragmentIsForwarded) {
    atp_header packet = gradient(1);
    packet.flags = ATP_FLAG_RESEND;
    for (const atp_aggregator& before :
         {of_another_job(), of_another_job(now_us - ageing_us - 1), holding(0x3, 40 - window)}) {
        const Outcome outcome = decide(packet, before);
        expect_decision(outcome, ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_RESENT);
        expect_untouched(outcome, before);
    }
}

TEST_P(DecideAtLevelOne, ResendPassesAndThePartialSumWaitsForAFlush) {
    atp_header packet = gradient(1);
    packet.flags = ATP_FLAG_RESEND;
    const atp_aggregator before = holding(0x5);
    const Outcome outcome = decide(packet, before);
    expect_decision(outcome, ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_RESENT);
    EXPECT_EQ(outcome.packet.hop, 2);
    expect_untouched(outcome, before);
}

TEST_P(DecideAtLevelZero, ResendFetchesThePartialSum) {
    atp_header packet = gradient(1);
    packet.flags = ATP_FLAG_RESEND;
    atp_aggregator before = holding(0x5);
    before.flags = ATP_FLAG_ECN;
    const Outcome outcome = decide(packet, before);
    expect_decision(outcome, ATP_PACKET_FORWARD, ATP_LANES_ADD_EMIT, ATP_EVENT_FETCHED);
    EXPECT_EQ(outcome.packet.hop, 1);
    EXPECT_EQ(outcome.packet.bitmap0, 0x7U);
    EXPECT_NE(outcome.packet.flags & ATP_FLAG_ECN, 0);
    EXPECT_EQ(outcome.aggregator.status, ATP_AGGREGATOR_FREE);
    EXPECT_EQ(decide(gradient(3), outcome.aggregator).decision.event, ATP_EVENT_LATE);
}

TEST_P(DecideAtLevelZero, ResendOfAnIncludedMemberIsNotAddedTwice) {
    atp_header packet = gradient(1);
    packet.flags = ATP_FLAG_RESEND;
    for (const std::uint32_t held : {0x2U, 0xbU, 0xfU}) {
        const Outcome outcome = decide(packet, holding(held));
        expect_decision(outcome, ATP_PACKET_FORWARD, ATP_LANES_EMIT, ATP_EVENT_FETCHED);
        EXPECT_EQ(outcome.packet.bitmap0, held);
        EXPECT_EQ(outcome.aggregator.status, ATP_AGGREGATOR_FREE);
    }
}

TEST_P(Decide, ResendWithOtherLanesFetchesNothing) {
    atp_header packet = gradient(1);
    packet.flags = ATP_FLAG_RESEND;
    const atp_aggregator before = holding(0x1);
    const Outcome outcome = decide(packet, before, false, lanes + 1);
    expect_decision(outcome, ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_RESENT);
    expect_untouched(outcome, before);
}

TEST_P(DecideAtLevelZero, ResendOfAnOverlappingSetFetchesNothing) {
    atp_header packet = gradient(1);
    packet.flags = ATP_FLAG_RESEND;
    packet.bitmap0 = 0x3;
    const atp_aggregator before = holding(0x1);
    const Outcome outcome = decide(packet, before);
    expect_sent_alone(outcome, ATP_EVENT_MISFIT);
    expect_untouched(outcome, before);
}

// --- releases

TEST_P(Decide, AckReleasesItsAggregatorAndLeavesATombstone) {
    for (const std::uint32_t held : {0x1U, full_mask()}) {
        const atp_header ack = down(ATP_TYPE_ACK);
        const Outcome outcome = decide(ack, holding(held));
        expect_decision(outcome, ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_RELEASED);
        expect_unchanged(outcome, ack);
        EXPECT_EQ(outcome.aggregator.status, ATP_AGGREGATOR_FREE);
        EXPECT_EQ(decide(gradient(0), outcome.aggregator).decision.event, ATP_EVENT_LATE);
    }
}

TEST_P(Decide, AckOfAnotherFragmentKeepsALiveAggregator) {
    const atp_header ack = down(ATP_TYPE_ACK);
    for (const atp_aggregator& before : {of_another_job(), holding(0x1, 41), atp_aggregator{}, remembering(39)}) {
        const Outcome outcome = decide(ack, before);
        expect_decision(outcome, ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_PASSED);
        expect_unchanged(outcome, ack);
        expect_untouched(outcome, before);
    }
}

TEST_P(Decide, AckOfAnotherFragmentExpiresAnAbandonedAggregator) {
    const Outcome outcome = decide(down(ATP_TYPE_ACK), of_another_job(now_us - ageing_us - 1));
    expect_decision(outcome, ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_EXPIRED);
    EXPECT_EQ(outcome.aggregator.status, ATP_AGGREGATOR_FREE);
    EXPECT_EQ(outcome.aggregator.job, 8U);
}

TEST_P(Decide, NackReleasesTheAggregatorOnlyWithBypass) {
    const atp_header release = down(ATP_TYPE_NACK, ATP_FLAG_BYPASS);
    const Outcome released = decide(release, holding(0x3));
    expect_decision(released, ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_RELEASED);
    EXPECT_EQ(released.aggregator.status, ATP_AGGREGATOR_FREE);

    const atp_header plain = down(ATP_TYPE_NACK);
    const Outcome kept = decide(plain, holding(0x3));
    expect_decision(kept, ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_PASSED);
    expect_unchanged(kept, plain);
    expect_untouched(kept, holding(0x3));
}

TEST_P(Decide, NackWithBypassOnAFreeAggregatorLeavesATombstone) {
    const Outcome outcome = decide(down(ATP_TYPE_NACK, ATP_FLAG_BYPASS), remembering(3));
    expect_decision(outcome, ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_CLOSED);
    EXPECT_EQ(outcome.aggregator.status, ATP_AGGREGATOR_FREE);
    EXPECT_EQ(decide(gradient(1), outcome.aggregator).decision.event, ATP_EVENT_LATE);
}

TEST_P(Decide, ProbesAndWaitsPassUnchanged) {
    for (const atp_type type : {ATP_TYPE_PROBE, ATP_TYPE_WAIT}) {
        const atp_header packet = down(type);
        for (const atp_aggregator& before : {atp_aggregator{}, holding(0x3), of_another_job(0)}) {
            const Outcome outcome = decide(packet, before, true);
            expect_decision(outcome, ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_PASSED);
            expect_unchanged(outcome, packet);
            expect_untouched(outcome, before);
        }
    }
}

// --- flushes

TEST_P(Decide, FlushReturnsThePartialSumAndReleases) {
    atp_aggregator before = holding(0x5);
    before.flags = ATP_FLAG_ECN | ATP_FLAG_OVERFLOW | ATP_FLAG_AUDIT | ATP_FLAG_PLAIN;
    const Outcome outcome = decide(flush(), before, true);
    expect_decision(outcome, ATP_PACKET_RETURN, ATP_LANES_EMIT, ATP_EVENT_FLUSHED);
    EXPECT_EQ(outcome.packet.type, ATP_TYPE_GRADIENT);
    EXPECT_EQ(outcome.packet.lanes, ATP_INT32_LANES);
    EXPECT_EQ(outcome.packet.worker, ATP_WORKER_ALL);
    EXPECT_EQ(outcome.packet.hop, hop() + 1);
    EXPECT_EQ(hop() == 0 ? outcome.packet.bitmap0 : outcome.packet.bitmap1, 0x5U);
    const unsigned whole = hop() == 1 ? ATP_FLAG_WHOLE : 0;
    EXPECT_EQ(outcome.packet.flags,
              ATP_FLAG_BYPASS | ATP_FLAG_ECN | ATP_FLAG_OVERFLOW | ATP_FLAG_AUDIT | ATP_FLAG_PLAIN | whole);
    EXPECT_EQ(outcome.aggregator.status, ATP_AGGREGATOR_FREE);
    EXPECT_EQ(decide(gradient(1), outcome.aggregator).decision.event, ATP_EVENT_LATE);
}

TEST_P(Decide, FlushOfAFreeAggregatorLeavesATombstone) {
    const Outcome outcome = decide(flush(), remembering(3), true);
    expect_decision(outcome, ATP_PACKET_DROP, ATP_LANES_NONE, ATP_EVENT_CLOSED);
    EXPECT_EQ(outcome.aggregator.status, ATP_AGGREGATOR_FREE);
    EXPECT_EQ(decide(gradient(1), outcome.aggregator).decision.event, ATP_EVENT_LATE);
}

TEST_P(Decide, FlushOnTheAggregatorOfAnotherFragmentIsAbsorbed) {
    atp_aggregator other_level = holding(0x1);
    other_level.unit = hop() == 0 ? 0 : 0x2;
    atp_aggregator other_unit = holding(0x1);
    other_unit.unit = 0x4;
    for (const atp_aggregator& before : {of_another_job(), holding(0x1, 41), other_level, other_unit}) {
        const Outcome outcome = decide(flush(), before, true);
        expect_decision(outcome, ATP_PACKET_DROP, ATP_LANES_NONE, ATP_EVENT_PASSED);
        expect_untouched(outcome, before);
    }
}

TEST_P(Decide, FlushOfLevelZeroWithoutAUnitIsAbsorbed) {
    if (hop() != 0) return;
    atp_header no_unit = flush();
    no_unit.bitmap1 = 0;
    atp_aggregator level_one = holding(0x3);
    level_one.unit = 0;
    for (const atp_aggregator& before : {level_one, holding(0x3)}) {
        const Outcome outcome = decide(no_unit, before, true);
        expect_decision(outcome, ATP_PACKET_DROP, ATP_LANES_NONE, ATP_EVENT_PASSED);
        expect_untouched(outcome, before);
    }
}

TEST_P(Decide, FlushOfAnotherLevelPassesUnchanged) {
    const Outcome outcome = decide(flush(), holding(0x5), false);
    expect_decision(outcome, ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_PASSED);
    expect_unchanged(outcome, flush());
    expect_untouched(outcome, holding(0x5));
}

// --- overflow

TEST_P(Decide, OverflowOfAnAbsorbedGradientIsKeptInTheAggregator) {
    Outcome outcome = decide(gradient(1), holding(0x1));
    atp_overflowed(&outcome.packet, outcome.decision, &outcome.aggregator);
    EXPECT_NE(outcome.aggregator.flags & ATP_FLAG_OVERFLOW, 0);
    EXPECT_EQ(outcome.packet.flags & ATP_FLAG_OVERFLOW, 0);
}

TEST_P(Decide, OverflowOfTheLastGradientMarksTheSumAndItsRepeats) {
    Outcome outcome = decide(gradient(1), holding(full_mask() & ~0x2U));
    atp_overflowed(&outcome.packet, outcome.decision, &outcome.aggregator);
    EXPECT_NE(outcome.packet.flags & ATP_FLAG_OVERFLOW, 0);
    EXPECT_NE(decide(gradient(0), outcome.aggregator).packet.flags & ATP_FLAG_OVERFLOW, 0);
}

}  // namespace
}  // namespace atp::protocol
