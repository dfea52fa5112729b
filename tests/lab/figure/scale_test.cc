// SPDX-License-Identifier: Apache-2.0
#include "figure/scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace atp::figure {
namespace {

std::vector<std::string> texts_of(const Scale& scale) {
    std::vector<std::string> texts;
    for (const Tick& tick : scale.ticks()) texts.push_back(tick.text);
    return texts;
}

using testing::ElementsAre;

TEST(Scale, TicksAreRoundNumbersAroundTheData) {
    EXPECT_THAT(texts_of(Scale({}, {0, 43}, 0, 100)), ElementsAre("0", "10", "20", "30", "40", "50"));
    EXPECT_THAT(texts_of(Scale({}, {0.92, 1.04}, 0, 100)), ElementsAre("0.9", "0.95", "1", "1.05"));
    EXPECT_THAT(texts_of(Scale({}, {-3, 3}, 0, 100)), ElementsAre("-4", "-2", "0", "2", "4"));
    EXPECT_THAT(texts_of(Scale({}, {0, 3e6}, 0, 100)), ElementsAre("0", "1e+06", "2e+06", "3e+06"));
}

TEST(Scale, RangeIncludesTheBoundsOfTheAxisAndEveryValue) {
    EXPECT_THAT(texts_of(Scale({.from = 0}, {60, 90}, 0, 100)), ElementsAre("0", "20", "40", "60", "80", "100"));
    EXPECT_THAT(texts_of(Scale({.from = 0, .to = 8}, {1, 8}, 0, 100)), ElementsAre("0", "2", "4", "6", "8"));
    const Scale wider({.from = 0, .to = 1}, {2}, 0, 100);
    EXPECT_LE(wider.pixel_of(2), 100);
}

TEST(Scale, LogarithmicTicksAreDecadesOrFinerForShortRanges) {
    EXPECT_THAT(texts_of(Scale({.logarithmic = true}, {0.001, 1}, 0, 100)), ElementsAre("0.001", "0.01", "0.1", "1"));
    EXPECT_THAT(texts_of(Scale({.logarithmic = true}, {8, 64}, 0, 100)), ElementsAre("10", "20", "50"));
    EXPECT_FALSE(Scale({.logarithmic = true}, {0, 1, 10}, 0, 100).shows(0));
}

TEST(Scale, LogarithmicTicksOfLongRangesSkipDecades) {
    EXPECT_THAT(texts_of(Scale({.logarithmic = true}, {1, 1e16}, 0, 100)),
                ElementsAre("1", "100", "10000", "1e+06", "1e+08", "1e+10", "1e+12", "1e+14", "1e+16"));
}

TEST(Scale, LogarithmicRangeStartsAtTheBoundOfTheAxis) {
    EXPECT_THAT(texts_of(Scale({.logarithmic = true, .from = 1}, {1.03, 110}, 0, 100)), ElementsAre("1", "10", "100"));
}

TEST(Scale, TicksAtNumbersAreAtTheValues) {
    EXPECT_THAT(texts_of(Scale({.logarithmic = true, .ticks_at_numbers = true}, {64, 8, 16, 8}, 0, 100)),
                ElementsAre("8", "16", "64"));
}

TEST(Scale, ValuesMapLinearlyToPixels) {
    const Scale linear({.from = 0, .to = 10}, {}, 100, 200);
    EXPECT_DOUBLE_EQ(linear.pixel_of(0), 100);
    EXPECT_DOUBLE_EQ(linear.pixel_of(5), 150);
    const Scale downwards({.from = 0, .to = 10}, {}, 300, 100);
    EXPECT_DOUBLE_EQ(downwards.pixel_of(10), 100);
    const Scale powers({.logarithmic = true}, {1, 100}, 0, 100);
    EXPECT_DOUBLE_EQ(powers.pixel_of(10), 50);
}

TEST(Scale, ScaleOfOneValueOrNoneHasTicks) {
    EXPECT_FALSE(Scale({}, {}, 0, 100).ticks().empty());
    EXPECT_FALSE(Scale({}, {5}, 0, 100).ticks().empty());
    EXPECT_FALSE(Scale({.logarithmic = true}, {5}, 0, 100).ticks().empty());
    EXPECT_FALSE(Scale({}, {std::numeric_limits<double>::quiet_NaN()}, 0, 100).ticks().empty());
}

}  // namespace
}  // namespace atp::figure
