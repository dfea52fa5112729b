// SPDX-License-Identifier: Apache-2.0
#include "random/random.h"

#include <gtest/gtest.h>

namespace atp::sim {
namespace {

// Constants: a seed must give the same run with every compiler and library.
TEST(Random, StreamOfASeedMatchesConstants) {
    Random random(1, 2);
    const std::array<std::uint64_t, 3> drawn{random.next(), random.next(), random.next()};
    Random again(1, 2);
    for (const std::uint64_t word : drawn) EXPECT_EQ(again.next(), word);
    EXPECT_EQ(mix64(0), 0xe220a8397b1dcdafULL);  // SplitMix64's published first output for seed 0
}

TEST(Random, StreamsOfOneSeedDiffer) { EXPECT_NE(Random(1, 2).next(), Random(1, 3).next()); }

TEST(Random, BetweenReachesBothBoundsAndStaysWithin) {
    Random random(7, 0);
    bool first = false;
    bool last = false;
    for (int i = 0; i < 1000; ++i) {
        const std::uint64_t drawn = random.between(3, 5);
        ASSERT_GE(drawn, 3U);
        ASSERT_LE(drawn, 5U);
        first |= drawn == 3;
        last |= drawn == 5;
    }
    EXPECT_TRUE(first);
    EXPECT_TRUE(last);
}

TEST(Random, ChanceMatchesItsProbability) {
    Random random(8, 0);
    int hits = 0;
    for (int i = 0; i < 10000; ++i) {
        ASSERT_FALSE(random.chance(0));
        ASSERT_TRUE(random.chance(1));
        hits += random.chance(0.25) ? 1 : 0;
    }
    EXPECT_NEAR(hits, 2500, 200);
}

TEST(LogNormal, DrawsMatchTheMedianAndTheTail) {
    constexpr LogNormal distribution{.median = 3, .spread = 1.5};
    constexpr int draws = 20'000;
    int above_median = 0;
    int above_two_deviations = 0;
    for (std::uint64_t key = 0; key < draws; ++key) {
        const double value = distribution.draw(key);
        above_median += value > distribution.median ? 1 : 0;
        above_two_deviations += value > distribution.median * std::exp(2 * distribution.spread) ? 1 : 0;
    }
    EXPECT_NEAR(above_median, draws / 2.0, 4 * 71);
    EXPECT_NEAR(above_two_deviations, draws * 0.02275, 4 * 21);
}

}  // namespace
}  // namespace atp::sim
