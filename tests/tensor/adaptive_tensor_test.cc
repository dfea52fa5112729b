// SPDX-License-Identifier: Apache-2.0
// Tests scales that follow the last sum, and int16 lanes, with all state machines.
#include "tensor/number_fitter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "support/scenes.h"
#include "tensor/tensors.h"

namespace atp::testing {
namespace {

using protocol::Membership;
using tensor::LaneType;
using tensor::NumberFitter;
using tensor::NumberForm;
using tensor::NumberTally;
using tensor::Scaling;
using Values = std::vector<float>;

constexpr std::size_t span_elements = tensor::span_elements(ATP_DTYPE_INT32);
constexpr std::size_t even_elements = 4;  // elements of a fragment, an even number

// A job that sums one tensor in each round, as training does.
class Rounds {
  public:
    // Tensors of up to `exact` elements are summed exactly.
    Rounds(const NetworkConfig& config, const NumberForm& form, std::size_t elements, std::size_t exact = 0)
        : network(at_scale(config, form.scale)), form_(form), elements_(elements), ranks_(config.membership.workers()) {
        for (Rank& rank : ranks_) {
            rank.fitter = std::make_unique<NumberFitter>(
                NumberFitter::Config{.form = form,
                                     .ranks = config.membership.workers(),
                                     .feed = std::make_shared<protocol::SilentWaker>(),
                                     .report = [this](const NumberTally& tally) { tallies_.push_back(tally); },
                                     .exact = exact});
        }
    }

    // Submits the tensor of the next round: rank r contributes value(r, element).
    template <class Value>
    void submit(const Value& value) {
        for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
            Rank& own = ranks_[rank];
            own.rounds.push_back(std::make_unique<Round>());
            Round& round = *own.rounds.back();
            for (std::size_t element = 0; element < elements_; ++element) round.in.push_back(value(rank, element));
            round.out.assign(elements_, 0);
            auto tensor = tensor::make_sum_tensor(numeric::ElementType::float32, round.in.data(), round.out.data(),
                                                  elements_, static_cast<float>(form_.scale), 1);
            round.fitted = own.fitter->fit(std::move(tensor), numeric::ElementType::float32, {.elements = elements_});
            for (const auto& before : round.fitted.before) network.submit(rank, *before);
            network.submit(rank, *round.fitted.tensor);
        }
    }
    template <class Value>
    const Values& sum(const Value& value) {
        submit(value);
        EXPECT_TRUE(network.finish());
        EXPECT_TRUE(all_ranks_agree());
        return ranks_[0].rounds.back()->out;
    }

    [[nodiscard]] bool all_ranks_agree() const {
        for (const Rank& rank : ranks_) {
            if (bits_of(rank) != bits_of(ranks_[0])) return false;
        }
        return true;
    }
    [[nodiscard]] std::vector<std::uint32_t> bits() const { return bits_of(ranks_[0]); }

    // Packets of scaled numbers.
    [[nodiscard]] std::size_t count(std::uint8_t dtype, atp_type type = ATP_TYPE_GRADIENT) const {
        return network.count_delivered([=](const Flight& flight) {
            return flight.is(type) && !flight.has(ATP_FLAG_PLAIN) &&
                   (flight.header().lanes & ATP_LANES_TYPE_MASK) == dtype;
        });
    }
    // The tally of rank 0 for its first round, which ends here.
    [[nodiscard]] NumberTally end_first_round() {
        tallies_.clear();
        ranks_[0].rounds.front()->fitted.tensor.reset();
        return tallies_.at(0);
    }

    Network network;

  private:
    struct Round {
        Values in, out;
        NumberFitter::Fitted fitted;
    };
    struct Rank {
        std::unique_ptr<NumberFitter> fitter;
        std::vector<std::unique_ptr<Round>> rounds;
    };

    [[nodiscard]] static NetworkConfig at_scale(NetworkConfig config, double scale) {
        config.scale = scale;
        return config;
    }
    [[nodiscard]] static std::vector<std::uint32_t> bits_of(const Rank& rank) {
        std::vector<std::uint32_t> bits;
        for (const auto& round : rank.rounds) {
            for (const float sum : round->out) bits.push_back(std::bit_cast<std::uint32_t>(sum));
        }
        return bits;
    }

    std::vector<NumberTally> tallies_;
    NumberForm form_;
    std::size_t elements_;
    std::vector<Rank> ranks_;
};

constexpr NumberForm dynamic{.scaling = Scaling::dynamic};
constexpr NumberForm dynamic_shorts{.scaling = Scaling::dynamic, .lane_type = LaneType::int16};
constexpr NumberForm fixed_shorts{.scale = 1024, .lane_type = LaneType::int16};

NetworkConfig with_even_fragments(NetworkConfig config) {
    config.channel.lanes = even_elements + 1;  // with the audit lane
    return config;
}

double relative_error(float sum, double expected) { return std::abs(sum - expected) / std::abs(expected); }

// --- dynamic scaling

// The first packet of worker 0 with scaled numbers.
Flight numbers_sent(const Rounds& rounds) {
    for (const Flight& flight : rounds.network.delivered()) {
        if (is_gradient_of(flight, 0) && !flight.has(ATP_FLAG_PLAIN)) return flight;
    }
    throw std::logic_error("nothing was sent");
}

std::uint8_t scale_sent(const Rounds& rounds) { return numbers_sent(rounds).header().scale; }

// H51 (docs/protocol.md#h51): the first operation already has a scale that fits.
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

// The largest error of an input, relative to the largest input of its span, with four ranks: docs/protocol.md,
// "Dynamic scaling".
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

// H50 (docs/protocol.md#h50): a scale depends on sums, never on the time at which they arrive.
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

// --- int16 lanes

TEST(ShortLanes, GradientsAndResultsHaveTwoBytesPerElement) {
    constexpr std::size_t fragments = 6;
    Rounds rounds(with_even_fragments(racks(2, 2)), fixed_shorts, even_elements * fragments);
    const auto value = [](unsigned rank, std::size_t element) {
        return static_cast<float>(rank + element) / 1024 - 0.01F;
    };
    const Values& sums = rounds.sum(value);
    for (std::size_t at = 0; at < sums.size(); ++at) {
        EXPECT_EQ(sums[at], (static_cast<float>(4 * at) + 6 - 40) / 1024) << "0.01 is rounded to 10 / 1024";
    }
    EXPECT_EQ(rounds.count(ATP_DTYPE_INT32) + rounds.count(ATP_DTYPE_FLOAT32), 0U);
    EXPECT_EQ(rounds.count(ATP_DTYPE_FLOAT32, ATP_TYPE_ACK), 0U);
    const std::size_t packet = ATP_HEADER_BYTES + (even_elements + 1) * ATP_LANE_BYTES;
    for (const Flight& flight : rounds.network.delivered()) EXPECT_EQ(flight.bytes.size(), packet);
    EXPECT_EQ(rounds.network.server().counters().added_here, 0U) << "the switches added all gradients";
    EXPECT_EQ(rounds.network.server().counters().audit_failures, 0U);
}

TEST(ShortLanes, OddNumberOfElementsIsPadded) {
    Rounds rounds(with_even_fragments(star(2)), fixed_shorts, even_elements + 1);
    const auto value = [](unsigned, std::size_t) { return 2.0F; };
    EXPECT_EQ(rounds.sum(value), Values(even_elements + 1, 4.0F));
    EXPECT_EQ(rounds.count(ATP_DTYPE_INT32) + rounds.count(ATP_DTYPE_FLOAT32), 0U);
}

TEST(ShortLanes, SumsBeyond16BitsAreFetchedUnaggregatedAndExact) {
    for (const NetworkConfig& config : {star(4), racks(2, 2)}) {
        Rounds rounds(with_even_fragments(config), fixed_shorts, even_elements * 2);
        const auto value = [](unsigned rank, std::size_t element) {
            return (element % 2 == 0 ? 25.0F : -25.0F) + static_cast<float>(rank);
        };
        const Values& sums = rounds.sum(value);
        for (std::size_t at = 0; at < sums.size(); ++at) EXPECT_EQ(sums[at], (at % 2 == 0 ? 100.0F : -100.0F) + 6);
        EXPECT_GT(rounds.network.count_delivered([](const Flight& flight) { return flight.has(ATP_FLAG_OVERFLOW); }),
                  0U);
        EXPECT_EQ(rounds.count(ATP_DTYPE_FLOAT32), 0U);
        EXPECT_EQ(rounds.network.server().counters().float_fragments, 0U);
        EXPECT_EQ(rounds.network.occupied(), 0U);
    }
}

TEST(ShortLanes, NumbersOutsideTheScaleAreSentAsFloats) {
    Rounds rounds(with_even_fragments(racks(2, 2)), fixed_shorts, even_elements * 2);
    const auto value = [](unsigned rank, std::size_t element) { return rank == 1 && element == 5 ? 1e20F : 0.25F; };
    const Values& sums = rounds.sum(value);
    EXPECT_EQ(sums[4], 1.0F);
    EXPECT_EQ(sums[5], 1e20F);
    EXPECT_EQ(rounds.network.server().counters().float_fragments, 1U);
}

TEST(ShortLanes, FlushedPartialSumKeepsItsInt16LanesAndScale) {
    Rounds rounds(with_even_fragments(star(3)), dynamic_shorts, even_elements);
    const auto value = [](unsigned rank, std::size_t) { return 0.125F * static_cast<float>(rank + 1); };
    EXPECT_EQ(rounds.sum(value), Values(even_elements, 0.75F));
    rounds.network.forget_delivered();
    rounds.network.hold_next(
        [](const Flight& flight) { return is_gradient_of(flight, 2) && !flight.has(ATP_FLAG_PLAIN); });
    rounds.submit(value);
    rounds.network.run();
    const Flight first = numbers_sent(rounds);
    ASSERT_EQ(first.header().lanes, ATP_INT16_LANES);
    rounds.network.inject({server_node, rack_node(0), flush_of(first, 0)});
    rounds.network.run();  // the server includes {0, 1}
    EXPECT_EQ(rounds.network.server().counters().refused, 0U);
    rounds.network.release();
    EXPECT_TRUE(rounds.network.finish());
    EXPECT_EQ(rounds.bits().back(), std::bit_cast<std::uint32_t>(0.75F));
    EXPECT_EQ(rounds.network.server().counters().mismatched, 0U);
}

TEST(ShortLanes, DynamicScalingUsesInt16LanesFromTheStart) {
    Rounds rounds(with_even_fragments(star(4)), dynamic_shorts, even_elements * 3);
    const auto value = [](unsigned rank, std::size_t element) {
        return std::sin(static_cast<float>(7 * rank + element + 1));
    };
    for (int round = 0; round < 2; ++round) {
        const Values& sums = rounds.sum(value);
        for (std::size_t at = 0; at < sums.size(); ++at) {
            double expected = 0;
            for (unsigned rank = 0; rank < 4; ++rank) expected += value(rank, at);
            EXPECT_NEAR(sums[at], expected, 4 * 0x1p-10);
        }
    }
    EXPECT_EQ(rounds.count(ATP_DTYPE_INT32) + rounds.count(ATP_DTYPE_FLOAT32), 0U);
}

// --- the same inputs, the same bits

struct FormCase {
    const char* name;
    NumberForm form;
};

class FittedReproducible : public ::testing::TestWithParam<FormCase> {
  protected:
    static constexpr std::size_t elements = even_elements * 20 + 3;
    static constexpr unsigned workers = 6;
    static constexpr int rounds_each = 5;

    // Values of a tensor. They grow and shrink from round to round, and one of them is infinity.
    static float value(int round, unsigned rank, std::size_t element) {
        const float ordinary = std::sin(static_cast<float>(element * 31 + rank * 7 + 1));
        if (round == 3 && element == 9 && rank == 2) return std::numeric_limits<float>::infinity();
        if (element < 12) return ordinary * std::ldexp(1.0F, round % 2 == 0 ? -20 : 13);
        return ordinary * 30;
    }
    void submit_all(Rounds& rounds) const {
        for (int round = 0; round < rounds_each; ++round) {
            rounds.submit([=](unsigned rank, std::size_t element) { return value(round, rank, element); });
        }
    }
    [[nodiscard]] std::vector<std::uint32_t> undisturbed() const {
        Rounds rounds(with_even_fragments(star(workers)), GetParam().form, elements);
        submit_all(rounds);
        EXPECT_TRUE(rounds.network.finish());
        EXPECT_TRUE(rounds.all_ranks_agree());
        return rounds.bits();
    }
    [[nodiscard]] static NetworkConfig some_tree(std::uint32_t seed) {
        const std::vector<NetworkConfig> trees{
            star(workers), racks(3, 2), racks(2, 3), racks(6, 1),
            network_of(*Membership::make(
                {{.ranks = {0, 1, 2, 3}}, {.ranks = {4}, .direct = true}, {.ranks = {5}, .direct = true}}))};
        NetworkConfig config = with_even_fragments(trees[seed % trees.size()]);
        config.aggregators = std::vector<std::uint32_t>{1, 3, 8, 1024}[seed / 5 % 4];
        config.racks_aggregate = seed % 7 != 0;
        config.has_root = seed % 3 != 0;
        config.channel.window_log2 = static_cast<std::uint8_t>(seed % 5);
        return config;
    }
};
INSTANTIATE_TEST_SUITE_P(Forms, FittedReproducible,
                         ::testing::Values(FormCase{"Dynamic", dynamic}, FormCase{"FixedShorts", fixed_shorts},
                                           FormCase{"DynamicShorts", dynamic_shorts}),
                         [](const auto& values) { return std::string(values.param.name); });

TEST_P(FittedReproducible, ResultBitsDependOnlyOnTheInputs) {
    const std::vector<std::uint32_t> expected = undisturbed();
    for (std::uint32_t seed = 1; seed <= 60; ++seed) {
        Rounds rounds(some_tree(seed), GetParam().form, elements);
        submit_all(rounds);
        const Faults faults{.loss = seed % 4 * 0.02, .duplication = seed % 3 * 0.05, .reordering = seed % 5 * 0.2};
        ASSERT_TRUE(rounds.network.finish_among(faults, seed)) << seed;
        ASSERT_TRUE(rounds.all_ranks_agree()) << seed;
        ASSERT_EQ(rounds.bits(), expected) << seed;
        ASSERT_EQ(rounds.network.server().counters().audit_failures, 0U) << seed;
        ASSERT_EQ(rounds.network.server().counters().mismatched, 0U) << seed;
    }
}

}  // namespace
}  // namespace atp::testing
