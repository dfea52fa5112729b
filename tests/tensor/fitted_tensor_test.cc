// SPDX-License-Identifier: Apache-2.0
// Tests scales that follow the last sum, with all state machines.
#include "tensor/fitted_tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <vector>

#include "support/rounds.h"

namespace atp::testing {
namespace {

using tensor::LaneType;
using tensor::Scaling;

constexpr std::size_t span_elements = tensor::span_elements(ATP_DTYPE_INT32);

std::uint8_t scale_sent(const Rounds& rounds) { return numbers_sent(rounds).header().scale; }

// H51 (docs/spec/hazards.md#h51): the first operation already has a scale that fits.
TEST(DynamicScaling, H51_FirstOperationKeepsItsDigitsAndSendsNoFloats) {
    for (const double magnitude : {1e-30, 1e-12, 1e-9, 1e-3, 1.0, 1e4, 1e6, 1e9, 1e30}) {
        Rounds rounds(star(4), dynamic, elements_each * 5);
        const auto value = [&](unsigned rank, std::size_t element) {
            return static_cast<float>(magnitude * (rank + 1) / static_cast<double>(element + 3));
        };
        for (int round = 0; round < 3; ++round) {
            const Values& sums = rounds.sum(value);
            for (std::size_t at = 0; at < sums.size(); ++at) {
                double expected = 0;
                for (unsigned rank = 0; rank < 4; ++rank) expected += value(rank, at);
                EXPECT_LT(relative_error(sums[at], expected), round == 0 ? 1e-5 : 1e-6) << magnitude;
            }
        }
        EXPECT_EQ(rounds.count(ATP_DTYPE_FLOAT32), 0U) << magnitude;
    }
}

TEST(DynamicScaling, H51_OperationWithElementsThatAreNotFiniteTakesTheScaleOfTheOthers) {
    Rounds rounds(star(4), dynamic, elements_each * 2);
    const auto value = [](unsigned rank, std::size_t element) {
        if (rank == 1 && element == 0) return std::numeric_limits<float>::infinity();
        return 1e6F + static_cast<float>(element);
    };
    const Values& sums = rounds.sum(value);
    EXPECT_TRUE(std::isinf(sums[0]));
    for (std::size_t at = 1; at < sums.size(); ++at) EXPECT_EQ(sums[at], 4 * value(0, at));
    EXPECT_EQ(rounds.network.server().counters().float_fragments, 1U);
}

TEST(DynamicScaling, H51_ZerosHaveAScaleToo) {
    Rounds rounds(star(2), dynamic, elements_each);
    const auto zero = [](unsigned, std::size_t) { return 0.0F; };
    for (int round = 0; round < 2; ++round) EXPECT_EQ(rounds.sum(zero), Values(elements_each, 0.0F));
    EXPECT_EQ(rounds.count(ATP_DTYPE_FLOAT32), 0U);
}

TEST(DynamicScaling, SumsMayGrowFourfoldWithoutFloats) {
    for (const NumberForm& form : {dynamic, dynamic_shorts}) {
        Rounds rounds(with_even_fragments(racks(2, 2)), form, even_elements);
        float magnitude = 1;
        for (int round = 0; round < 8; ++round) {
            rounds.sum([&](unsigned rank, std::size_t) { return magnitude * (rank == 0 ? 0.99F : 0.0F); });
            magnitude *= 3.9F;
        }
        EXPECT_EQ(rounds.count(ATP_DTYPE_FLOAT32), 0U);
    }
}

TEST(DynamicScaling, H52_LargerNumbersAreFloatsOnceAndSmallerOnesGainDigitsStepByStep) {
    for (const double factor : {1e5, 1e20}) {
        Rounds rounds(racks(2, 2), dynamic, elements_each * 2);
        const auto small = [](unsigned rank, std::size_t) { return 0.5F + static_cast<float>(rank); };
        const auto large = [&](unsigned rank, std::size_t at) { return static_cast<float>(small(rank, at) * factor); };
        rounds.sum(small);
        rounds.network.forget_delivered();
        for (const float sum : rounds.sum(large)) EXPECT_LT(relative_error(sum, 8 * factor), 1e-6);
        EXPECT_GT(rounds.count(ATP_DTYPE_FLOAT32), 0U);
        rounds.network.forget_delivered();
        rounds.sum(large);
        EXPECT_EQ(rounds.count(ATP_DTYPE_FLOAT32), 0U) << "the scale has followed the larger sums";
        const std::uint8_t low = scale_sent(rounds);
        for (int round = 1; round <= 3; ++round) {
            rounds.network.forget_delivered();
            rounds.sum([&](unsigned rank, std::size_t at) { return large(rank, at) * 0x1p-7F; });
            EXPECT_EQ(rounds.count(ATP_DTYPE_FLOAT32), 0U);
            EXPECT_EQ(scale_sent(rounds), low + std::min((round - 1) * tensor::most_rise, 7));
        }
    }
}

// The largest error of an input, relative to the largest input of its span, with four ranks:
// docs/spec/numbers.md#dynamic-scaling.
double most_error(LaneType type) {
    if (type == LaneType::int8) return 0x1p-2;
    return type == LaneType::int16 ? 0x1p-7 : 0x1p-15;
}

// The sums of equal numbers of four ranks, in a job whose last sums were 4, and the sums of 1 that follow.
void expect_exact_after_ones(const NetworkConfig& config, const NumberForm& form, float number) {
    const auto ranks = static_cast<float>(config.membership.workers());
    Rounds rounds(with_even_fragments(config), form, even_elements * 3);
    const auto constant = [](float value) { return [value](unsigned, std::size_t) { return value; }; };
    for (int round = 0; round < 2; ++round) rounds.sum(constant(1));
    for (const float sum : rounds.sum(constant(number))) EXPECT_EQ(sum, ranks * number);
    for (const float sum : rounds.sum(constant(number))) {
        EXPECT_LE(relative_error(sum, ranks * number), most_error(form.lane_type));
    }
    for (const float sum : rounds.sum(constant(1))) EXPECT_EQ(sum, ranks);
}

TEST(DynamicScaling, H52_NumbersFarFromThoseOfTheReferenceAreSummedExactly) {
    for (const LaneType type : {LaneType::int32, LaneType::int16, LaneType::int8}) {
        for (const float number : {0.3e-3F, 0.3e-6F, 0.7e-12F, 0.7e-30F, 1e-25F, -0.7e-12F, 0x1.8p20F}) {
            const NumberForm form{.scaling = Scaling::dynamic, .lane_type = type};
            SCOPED_TRACE(::testing::Message() << "lane type " << static_cast<int>(type) << ", " << number);
            expect_exact_after_ones(star(4), form, number);
            expect_exact_after_ones(racks(2, 2), form, number);
        }
    }
}

TEST(DynamicScaling, H52_SubnormalNumbersKeepTheDigitsAbove2ToTheMinus128) {
    Rounds rounds(star(2), dynamic, elements_each);
    rounds.sum([](unsigned, std::size_t) { return 1.0F; });
    for (const float sum : rounds.sum([](unsigned, std::size_t) { return 0x1.8p-127F; })) {
        EXPECT_NEAR(sum, 0x1.8p-126, 0x1p-127);
    }
}

TEST(DynamicScaling, H52_SmallNumbersOfOneRankAloneAreSummedExactly) {
    Rounds rounds(racks(2, 2), dynamic_shorts, elements_each);
    const auto of_one = [](float value) {
        return [value](unsigned rank, std::size_t) { return rank == 1 ? value : 0; };
    };
    rounds.sum([](unsigned, std::size_t) { return 1.0F; });
    EXPECT_EQ(rounds.sum(of_one(0.7e-12F)), Values(elements_each, 0.7e-12F));
}

TEST(DynamicScaling, NumbersBesideLargerOnesOfAnotherRankTravelAsIntegers) {
    for (const NumberForm& form : {dynamic, dynamic_shorts}) {
        Rounds rounds(with_even_fragments(racks(2, 2)), form, even_elements);
        const auto value = [](unsigned rank, std::size_t) { return rank == 1 ? 1.0F : 1e-20F; };
        for (int round = 0; round < 3; ++round) EXPECT_EQ(rounds.sum(value), Values(even_elements, 1.0F));
        EXPECT_EQ(rounds.count(ATP_DTYPE_FLOAT32), 0U);
    }
}

TEST(DynamicScaling, ZerosAfterOtherNumbersTravelAsIntegers) {
    Rounds rounds(with_even_fragments(star(4)), dynamic_shorts, even_elements);
    const auto constant = [](float value) { return [value](unsigned, std::size_t) { return value; }; };
    rounds.sum(constant(1));
    for (int round = 0; round < 2; ++round) EXPECT_EQ(rounds.sum(constant(0)), Values(even_elements, 0.0F));
    EXPECT_EQ(rounds.count(ATP_DTYPE_FLOAT32), 0U);
}

TEST(DynamicScaling, H52_OneInfinityLowersTheNextScaleByOneStep) {
    Rounds rounds(star(2), dynamic, elements_each);
    const auto constant = [](float value) { return [value](unsigned, std::size_t) { return value; }; };
    const auto next = [&](float value) {
        rounds.network.forget_delivered();
        rounds.sum(constant(value));
        return scale_sent(rounds);
    };
    next(1.0F);
    const std::uint8_t own = next(1.0F);
    EXPECT_EQ(next(std::numeric_limits<float>::infinity()), own);
    EXPECT_EQ(next(1.0F), own - 1);
    EXPECT_EQ(next(std::numeric_limits<float>::quiet_NaN()), own);
    EXPECT_EQ(next(0.0F), own - 1);
    EXPECT_EQ(next(1.0F), own - 1) << "zeros keep the scale";
}

TEST(DynamicScaling, SmallTensorIsSummedExactlyInOneRoundTrip) {
    for (const NetworkConfig& config : {star(4), racks(2, 2)}) {
        Rounds rounds(config, dynamic_shorts, elements_each, elements_each);
        for (const float factor : {1.0F, 1e-25F, 0.0F, 1e30F}) {
            const Values& sums = rounds.sum([factor](unsigned rank, std::size_t at) {
                if (rank == 3) return 0.0F;
                return factor * (rank == 0 ? 1.0F : 1e-6F * static_cast<float>(at));
            });
            for (std::size_t at = 0; at < sums.size(); ++at) {
                const double each = factor * (1e-6F * static_cast<float>(at));
                EXPECT_EQ(sums[at], static_cast<float>(double{factor} + each + each));
            }
        }
        EXPECT_EQ(rounds.count(ATP_DTYPE_INT32) + rounds.count(ATP_DTYPE_INT16), 0U);
        EXPECT_EQ(rounds.network.server().counters().nacks, 0U) << "no worker sent integers";
        for (unsigned rank = 0; rank < 4; ++rank) {
            EXPECT_EQ(rounds.network.worker(rank).counters().float_fragments, 0U) << "floats by choice";
            EXPECT_EQ(rounds.network.worker(rank).counters().resent, 0U);
        }
        EXPECT_EQ(rounds.network.worker(0).next_seq(), 4U);
    }
}

// The votes and the numbers of all ranks are on their way at once.
TEST(DynamicScaling, RankWithLargeNumbersSendsThemWithItsVote) {
    Rounds rounds(star(2), dynamic, elements_each);
    const auto ones = [](unsigned, std::size_t) { return 1.0F; };
    rounds.sum(ones);
    rounds.network.forget_delivered();
    rounds.network.hold_next([](const Flight& flight) { return flight.is(ATP_TYPE_ACK); }, 100);
    rounds.submit(ones);
    rounds.network.run();
    EXPECT_EQ(rounds.count(ATP_DTYPE_INT32), 3U) << "both gradients and their sum came before a result of the votes";
    rounds.network.release();
    EXPECT_TRUE(rounds.network.finish());
    EXPECT_TRUE(rounds.all_ranks_agree());
}

TEST(DynamicScaling, RankWithSmallNumbersWaitsForTheVotes) {
    Rounds rounds(star(2), dynamic, elements_each);
    rounds.sum([](unsigned, std::size_t) { return 1.0F; });
    rounds.network.forget_delivered();
    rounds.network.hold_next([](const Flight& flight) { return flight.is(ATP_TYPE_ACK); }, 100);
    rounds.submit([](unsigned rank, std::size_t) { return rank == 0 ? 1.0F : 1e-20F; });
    rounds.network.run();
    EXPECT_EQ(rounds.count(ATP_DTYPE_INT32), 1U);
    rounds.network.release();
    EXPECT_TRUE(rounds.network.finish());
    EXPECT_TRUE(rounds.all_ranks_agree());
    EXPECT_EQ(rounds.count(ATP_DTYPE_FLOAT32), 0U);
}

NetworkConfig with_long_fragments(NetworkConfig config) {
    config.channel.lanes = span_elements / 4 + 1;  // with the audit lane: four fragments in a span
    config.channel.window_log2 = 5;
    return config;
}

// H50 (docs/spec/hazards.md#h50): a scale depends on sums, never on the time at which they arrive.
TEST(DynamicScaling, H50_VotesWaitForTheSumsOfTheirSpans) {
    Rounds rounds(with_long_fragments(star(2)), dynamic, span_elements + 100);
    const auto ones = [](unsigned, std::size_t) { return 1.0F; };
    // Fragment 0 has the exponents, 1 the votes, 2 to 5 the first span, 6 the second one.
    rounds.network.hold_next([](const Flight& flight) { return is_gradient_of(flight, 1, 6); }, 100);
    for (int round = 0; round < 3; ++round) rounds.submit(ones);
    rounds.network.run();
    EXPECT_EQ(rounds.network.worker(0).next_seq(), 7U) << "the votes of the second round wait";
    rounds.network.release();
    EXPECT_TRUE(rounds.network.finish());
    EXPECT_TRUE(rounds.all_ranks_agree());
    EXPECT_EQ(rounds.network.worker(0).next_seq(), 19U);
}

TEST(DynamicScaling, EachSpanHasItsScale) {
    Rounds rounds(with_long_fragments(star(2)), dynamic, 2 * span_elements);
    const auto value = [](unsigned, std::size_t element) { return element < span_elements ? 1.0F : 1e-6F; };
    rounds.sum(value);
    rounds.network.forget_delivered();
    for (int round = 0; round < 4; ++round) rounds.sum(value);
    rounds.network.forget_delivered();
    const Values& sums = rounds.sum(value);
    EXPECT_LT(relative_error(sums.back(), 2e-6), 1e-6);
    std::set<std::uint8_t> scales;
    for (const Flight& flight : rounds.network.delivered()) {
        if (is_gradient_of(flight, 0) && !flight.has(ATP_FLAG_PLAIN)) scales.insert(flight.header().scale);
    }
    EXPECT_EQ(scales.size(), 2U);
}

TEST(DynamicScaling, TallyCountsFloatsAndNumbersThatVanish) {
    Rounds rounds(star(2), dynamic_shorts, 4 * elements_each);
    const auto value = [](unsigned rank, std::size_t element) {
        if (element == 0) return rank == 0 ? std::numeric_limits<float>::infinity() : 1.0F;
        return element == 2 * elements_each ? 1.0F : 1e-9F;
    };
    rounds.sum(value);
    const NumberTally tally = rounds.end_first_round();
    EXPECT_EQ(tally.floats, 1U);
    EXPECT_EQ(tally.vanished + 1, tally.values) << "of the fragment with integers, all but one";
    EXPECT_GT(tally.vanished, 0U);
}

TEST(DynamicScaling, WorkersWithDifferentScalesGetNoSum) {
    struct Other final : protocol::Tensor {
        [[nodiscard]] std::uint64_t size() const override { return elements_each; }
        [[nodiscard]] std::uint8_t scale(std::uint64_t) const override { return own_scale; }
        [[nodiscard]] bool load_integers(std::uint64_t, std::span<std::byte>) const override { return true; }
        void load_floats(std::uint64_t, std::span<std::byte>) const override {}
        void store(std::uint64_t, std::span<const std::byte>) override {
            ADD_FAILURE() << "a sum of gradients with different scales was delivered";
        }
        std::uint8_t own_scale = 0;
    };
    for (const NetworkConfig& config : {star(2), racks(2, 1), racks(2, 2)}) {
        Network network(config);
        std::vector<Other> tensors(config.membership.workers());
        for (unsigned rank = 0; rank < tensors.size(); ++rank) {
            tensors[rank].own_scale = static_cast<std::uint8_t>(ATP_SCALE_ONE + rank);
            network.submit(rank, tensors[rank]);
        }
        EXPECT_TRUE(network.finish(20));
        for (unsigned rank = 0; rank < tensors.size(); ++rank) {
            ASSERT_EQ(network.events(rank).size(), 1U);
            EXPECT_EQ(network.events(rank)[0].kind, protocol::WorkerEvent::Kind::mismatched);
        }
    }
}

}  // namespace
}  // namespace atp::testing
