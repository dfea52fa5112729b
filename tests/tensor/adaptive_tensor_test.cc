// SPDX-License-Identifier: Apache-2.0
// Tests scales that follow the last sum, and int16 lanes, with all state machines.
#include "tensor/adaptive_tensor.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "support/scenes.h"
#include "tensor/tensors.h"

namespace atp::testing {
namespace {

using protocol::Membership;
using tensor::FittedTensor;
using tensor::LaneType;
using tensor::NumberForm;
using tensor::ScaleHistory;
using tensor::Scaling;
using Values = std::vector<float>;

constexpr std::size_t even_elements = 4;  // elements of a fragment, an even number

// A job that sums one tensor in each round, as training does.
class Rounds {
  public:
    Rounds(const NetworkConfig& config, const NumberForm& form, std::size_t elements)
        : network(at_scale(config, form.scale)), form_(form), elements_(elements), ranks_(config.membership.workers()) {
        const std::size_t fragment = config.channel.payload_lanes();
        for (Rank& rank : ranks_) {
            rank.history =
                std::make_shared<ScaleHistory>(elements, fragment, std::make_shared<protocol::SilentWaker>());
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
            const bool dynamic = form_.scaling == Scaling::dynamic;
            round.tensor = std::make_unique<FittedTensor>(
                std::move(tensor), form_, network.config().channel.payload_lanes(), dynamic ? own.history : nullptr);
            network.submit(rank, *round.tensor);
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

    [[nodiscard]] std::size_t count(std::uint8_t dtype, atp_type type = ATP_TYPE_GRADIENT) const {
        return network.count_delivered([=](const Flight& flight) {
            return flight.is(type) && (flight.header().lanes & ATP_LANES_TYPE_MASK) == dtype;
        });
    }

    Network network;

  private:
    struct Round {
        Values in, out;
        std::unique_ptr<FittedTensor> tensor;
    };
    struct Rank {
        std::shared_ptr<ScaleHistory> history;
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

TEST(DynamicScaling, NumbersTooSmallForTheFixedScaleKeepTheirDigits) {
    for (const double magnitude : {1e-30, 1e-12, 1e-3, 1.0, 1e9, 1e30}) {
        Rounds rounds(star(4), dynamic, elements_each * 5);
        const auto value = [&](unsigned rank, std::size_t element) {
            return static_cast<float>(magnitude * (rank + 1) / static_cast<double>(element + 3));
        };
        for (int round = 0; round < 3; ++round) {
            const Values& sums = rounds.sum(value);
            for (std::size_t at = 0; at < sums.size(); ++at) {
                double expected = 0;
                for (unsigned rank = 0; rank < 4; ++rank) expected += value(rank, at);
                // Round 0 uses the scale of the job, which may give fewer digits.
                EXPECT_LT(relative_error(sums[at], expected), round == 0 ? 1e-3 : 1e-6) << magnitude;
            }
        }
    }
}

TEST(DynamicScaling, FloatsAreSentOnlyUntilTheScaleIsKnown) {
    Rounds rounds(star(4), dynamic, elements_each * 5);
    const auto tiny = [](unsigned rank, std::size_t element) {
        return 1e-12F * static_cast<float>(rank + element + 1);
    };
    rounds.sum(tiny);
    EXPECT_GT(rounds.count(ATP_DTYPE_FLOAT32), 0U);
    rounds.network.forget_delivered();
    rounds.sum(tiny);
    EXPECT_EQ(rounds.count(ATP_DTYPE_FLOAT32), 0U);
    EXPECT_EQ(rounds.network.server().counters().added_here, 5U * 3)
        << "the server adds the floats of the first round only";
}

TEST(DynamicScaling, NumbersAboveTheirScaleAreSentAsFloats) {
    for (const double factor : {1e-20, 1e-5, 1e5, 1e20}) {
        Rounds rounds(racks(2, 2), dynamic, elements_each * 2);
        const auto small = [](unsigned rank, std::size_t) { return 0.5F + static_cast<float>(rank); };
        const auto other = [&](unsigned rank, std::size_t element) {
            return static_cast<float>(small(rank, element) * factor);
        };
        rounds.sum(small);
        rounds.network.forget_delivered();
        const Values changed = rounds.sum(other);
        EXPECT_GT(rounds.count(ATP_DTYPE_FLOAT32), 0U);
        for (const float sum : changed) EXPECT_LT(relative_error(sum, 8 * factor), 1e-6);
        rounds.network.forget_delivered();
        rounds.sum(other);
        EXPECT_EQ(rounds.count(ATP_DTYPE_FLOAT32), 0U) << "the scale has followed the larger sums";
    }
}

TEST(DynamicScaling, ZerosRestoreTheFirstScaleAndNanKeepsTheScale) {
    Rounds rounds(star(2), dynamic, elements_each);
    const auto constant = [](float value) { return [value](unsigned, std::size_t) { return value; }; };
    const auto scale_of_last = [&] { return first_sending(rounds.network, 0).header().scale; };
    const auto next = [&](float value) {
        rounds.network.forget_delivered();
        return rounds.sum(constant(value)).front();
    };
    EXPECT_EQ(next(1.0F), 2.0F);
    const std::uint8_t first = scale_of_last();
    EXPECT_NE(first, protocol::scale_of_job) << "there, the server sums each number that has an integer as one";
    EXPECT_EQ(next(0.0F), 0.0F);
    const std::uint8_t own = scale_of_last();
    EXPECT_NE(own, first);
    EXPECT_EQ(next(std::numeric_limits<float>::infinity()), std::numeric_limits<float>::infinity());
    EXPECT_EQ(scale_of_last(), first);
    EXPECT_EQ(next(1.0F), 2.0F);
    EXPECT_EQ(scale_of_last(), first);
    EXPECT_TRUE(std::isnan(next(std::numeric_limits<float>::quiet_NaN())));
    EXPECT_EQ(scale_of_last(), own);
    EXPECT_EQ(next(1.0F), 2.0F);
    EXPECT_EQ(scale_of_last(), own);
}

TEST(DynamicScaling, FragmentWaitsOnlyForTheLastSumOfTheSameElements) {
    Rounds rounds(star(2), dynamic, elements_each * 2);
    const auto ones = [](unsigned, std::size_t) { return 1.0F; };
    rounds.network.hold_next([](const Flight& flight) { return is_gradient_of(flight, 1, 0); });
    for (int round = 0; round < 3; ++round) rounds.submit(ones);
    rounds.network.run();
    EXPECT_EQ(rounds.network.worker(0).next_seq(), 2U)
        << "two fragments of the first round were sent, none of the second round";
    rounds.network.release();
    EXPECT_TRUE(rounds.network.finish());
    EXPECT_TRUE(rounds.all_ranks_agree());
    EXPECT_EQ(rounds.network.worker(0).next_seq(), 6U);
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
    rounds.network.hold_next([](const Flight& flight) { return is_gradient_of(flight, 2); });
    rounds.submit(value);
    rounds.network.run();
    const Flight first = first_sending(rounds.network, 0);
    ASSERT_EQ(first.header().lanes, ATP_INT16_LANES);
    rounds.network.inject({server_node, rack_node(0), flush_of(first, 0)});
    rounds.network.run();  // the server includes {0, 1}
    EXPECT_EQ(rounds.network.server().counters().refused, 0U);
    rounds.network.release();
    EXPECT_TRUE(rounds.network.finish());
    EXPECT_EQ(rounds.bits().back(), std::bit_cast<std::uint32_t>(0.75F));
    EXPECT_EQ(rounds.network.server().counters().mismatched, 0U);
}

TEST(ShortLanes, DynamicScalingStartsWithFloatsAndContinuesWithInt16Lanes) {
    Rounds rounds(with_even_fragments(star(4)), dynamic_shorts, even_elements * 3);
    const auto value = [](unsigned rank, std::size_t element) {
        return std::sin(static_cast<float>(7 * rank + element + 1));
    };
    rounds.sum(value);
    EXPECT_EQ(rounds.count(ATP_DTYPE_INT16), 0U);
    rounds.network.forget_delivered();
    const Values& sums = rounds.sum(value);
    EXPECT_EQ(rounds.count(ATP_DTYPE_INT32) + rounds.count(ATP_DTYPE_FLOAT32), 0U);
    for (std::size_t at = 0; at < sums.size(); ++at) {
        double expected = 0;
        for (unsigned rank = 0; rank < 4; ++rank) expected += value(rank, at);
        EXPECT_NEAR(sums[at], expected, 4 * 0x1p-10);
    }
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
