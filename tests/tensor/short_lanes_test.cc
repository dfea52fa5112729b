// SPDX-License-Identifier: Apache-2.0
// Tests int16 lanes, and that equal inputs give equal bits in every form, with all state machines.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/rounds.h"

namespace atp::testing {
namespace {

using protocol::Membership;

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

// Numbers of two cells: those of the second one have a quarter of the magnitude.
constexpr std::size_t cell_elements = tensor::cell_elements(ATP_DTYPE_INT16);

float value_in_cells(unsigned rank, std::size_t element) {
    const float part = 1 - static_cast<float>((7 * element + 3 * rank) % cell_elements) * 1e-3F;
    return element < cell_elements ? part : part / 4;
}

TEST(ShortLanes, SmallNumbersBesideLargerOnesKeepTheirDigits) {
    Rounds rounds(star(2), dynamic_shorts, 2 * cell_elements);
    for (int round = 0; round < 2; ++round) rounds.sum(value_in_cells);
    const Values& sums = rounds.sum(value_in_cells);
    for (std::size_t at = cell_elements; at < sums.size(); ++at) {
        EXPECT_NEAR(sums[at], double{value_in_cells(0, at)} + value_in_cells(1, at), 0x1p-13);
    }
    EXPECT_EQ(rounds.count(ATP_DTYPE_FLOAT32), 0U);
}

TEST(ShortLanes, NumbersOfACellHaveTheSameSumAsFloatsAndAsIntegers) {
    for (const NetworkConfig& config : {star(2), racks(2, 2)}) {
        const auto sums = [&](float last) {
            Rounds rounds(config, dynamic_shorts, 2 * cell_elements);
            rounds.sum(value_in_cells);
            return rounds.sum([last](unsigned rank, std::size_t element) {
                return rank == 1 && element % elements_each == 0 ? last : value_in_cells(rank, element);
            });
        };
        const Values integers = sums(0.125F);
        for (const float large : {1e10F, -1e35F, INFINITY}) {
            const Values floats = sums(large);
            for (std::size_t at = 0; at < floats.size(); ++at) {
                if (at % elements_each == 0) {
                    EXPECT_EQ(floats[at], large) << at;
                } else {
                    EXPECT_EQ(floats[at], integers[at]) << at;
                }
            }
        }
    }
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
        config.root_aggregates = seed % 3 != 0;
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
