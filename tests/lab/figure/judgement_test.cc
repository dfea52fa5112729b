// SPDX-License-Identifier: Apache-2.0
#include "figure/judgement.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <vector>

namespace atp::figure {
namespace {

Check over(Check check, double low, double high) {
    check.low = low;
    check.high = high;
    return check;
}

TEST(Number, HoldsWithinTheToleranceOnBothSides) {
    EXPECT_EQ(number(1.5, same_ratio, "a", 1.5 * 1.14).verdict(), Verdict::holds);
    EXPECT_EQ(number(1.5, same_ratio, "a", 1.5 * 1.16).verdict(), Verdict::differs);
    EXPECT_EQ(number(1.5, same_ratio, "a", 1.5 / 1.14).verdict(), Verdict::holds);
    EXPECT_EQ(number(1.5, same_ratio, "a", 1.5 / 1.16).verdict(), Verdict::differs);
}

TEST(Number, DiffersIfTheEffectHasTheOtherSignHoweverSmall) {
    EXPECT_EQ(number(1.02, same_ratio, "a", 1.001).verdict(), Verdict::holds);
    EXPECT_EQ(number(1.02, same_ratio, "a", 0.999).verdict(), Verdict::differs);
    EXPECT_EQ(equal(0.95, "a", 0.999).verdict(), Verdict::holds);
    EXPECT_EQ(equal(0.95, "a", 1.0001).verdict(), Verdict::differs);
}

TEST(Number, IsUndecidedIfItsIntervalStraddlesTheTolerance) {
    const Check check = number(2, same_ratio, "a", 2.2);
    EXPECT_EQ(over(check, 2.1, 2.29).verdict(), Verdict::holds);
    EXPECT_EQ(over(check, 2.1, 2.4).verdict(), Verdict::undecided);
    EXPECT_EQ(over(check, 1, 3).verdict(), Verdict::undecided);
    EXPECT_EQ(over(check, 2.4, 2.5).verdict(), Verdict::differs);
}

TEST(Number, WithoutAValueDiffers) {
    EXPECT_EQ(number(2, same_ratio, "a", std::numeric_limits<double>::quiet_NaN()).verdict(), Verdict::differs);
}

TEST(Number, TextHasTheDeviationWithItsSign) {
    const Check check = number(4.2, same_ratio, "a", 1.745);
    EXPECT_EQ(check.expected, "4.2, from 3.65 to 4.83");
    EXPECT_EQ(equal(0.95, "a", 0.9).expected, "0.95, from 0.9 to 1");
    EXPECT_EQ(check.deviation_text(), "-58.5 %");
    EXPECT_EQ(number(2, same_ratio, "a", 2.1).deviation_text(), "+5.0 %");
    EXPECT_EQ(equal(0, "a", 0.01).deviation_text(), "+0.010");
    EXPECT_EQ(equal(1, "a", 0.98).deviation_text(), "-2.0 %");
    EXPECT_EQ(over(number(2, same_ratio, "a", 2), 1.9, 2.1).value_text(), "2 (1.9 to 2.1)");
    EXPECT_EQ(notified("a", 14602998).value_text(), "14602998");
}

TEST(Equal, HoldsWithinAnAbsoluteBand) {
    EXPECT_EQ(equal(1, "a", 1.04).verdict(), Verdict::holds);
    EXPECT_EQ(equal(1, "a", 0.94).verdict(), Verdict::differs);
    EXPECT_EQ(equal(0, "a", -0.04).verdict(), Verdict::holds);
    EXPECT_EQ(equal(0, "a", -0.06).verdict(), Verdict::differs);
}

TEST(Notified, IsNoResult) {
    EXPECT_FALSE(notified("a", 3).assessed());
    EXPECT_EQ(notified("a", 3).deviation_text(), "");
    EXPECT_EQ(verdict_of(std::array{notified("a", 3)}, Basis::sockets), Verdict::undecided);
}

TEST(Shape, MonotoneAllowsNoStepAgainstTheTrend) {
    EXPECT_EQ(monotone(Trend::rises, "a", std::array{1.0, 2.0, 2.0, 3.0}).verdict(), Verdict::holds);
    EXPECT_EQ(monotone(Trend::rises, "a", std::array{1.0, 2.0, 1.99}).verdict(), Verdict::differs);
    EXPECT_EQ(monotone(Trend::falls, "a", std::array{3.0, 2.0, 1.0}).verdict(), Verdict::holds);
    EXPECT_DOUBLE_EQ(monotone(Trend::falls, "a", std::array{4.0, 2.0, 2.5}).value, 0.8);
}

TEST(Shape, FlatIsWithinFivePercent) {
    EXPECT_EQ(flat("a", std::array{1.0, 1.04, 1.02}).verdict(), Verdict::holds);
    EXPECT_EQ(flat("a", std::array{1.0, 1.06, 1.02}).verdict(), Verdict::differs);
}

TEST(Shape, OrderNeedsALeadOfEachNumber) {
    EXPECT_EQ(order("a", std::array{3.0, 2.0, 1.0}).verdict(), Verdict::holds);
    EXPECT_EQ(order("a", std::array{3.0, 1.0, 2.0}).verdict(), Verdict::differs);
    EXPECT_EQ(order("a", std::array{2.0, 2.0}).verdict(), Verdict::undecided);
    EXPECT_EQ(order("a", std::array{1.04, 1.0}, 1 + equality).verdict(), Verdict::differs);
}

TEST(Shape, KneeIsTheFirstPointOfThePlateau) {
    const std::array x{16.0, 32.0, 64.0, 128.0, 256.0};
    const std::array y{8.0, 4.0, 2.0, 1.04, 1.0};
    EXPECT_EQ(knee(125, "a", x, y).value, 128);
    EXPECT_EQ(knee(125, "a", x, y).verdict(), Verdict::holds);
    EXPECT_EQ(knee(512, "a", x, y).verdict(), Verdict::differs);
}

TEST(Shape, StableAndCollapseDescribeSamples) {
    EXPECT_EQ(stable("a", std::array{1.0, 1.1, 0.9, 1.0}).verdict(), Verdict::holds);
    EXPECT_EQ(stable("a", std::array{1.0, 2.0, 0.1, 1.0}).verdict(), Verdict::differs);
    EXPECT_EQ(collapse(0.5, "a", std::array{0.0, 0.1, 1.0, 1.0}).verdict(), Verdict::holds);
    EXPECT_EQ(collapse(0.5, "a", std::array{0.0, 1.0, 1.0}).verdict(), Verdict::differs);
}

TEST(Shape, CrossoverNeedsBothSides) {
    EXPECT_EQ(crossover("a", std::array{1.2, 1.1}, std::array{0.9}).verdict(), Verdict::holds);
    EXPECT_EQ(crossover("a", std::array{1.2, 1.1}, std::array{0.9, 1.1}).verdict(), Verdict::differs);
    EXPECT_EQ(crossover("a", std::array{0.9}, std::array{0.9}).verdict(), Verdict::differs);
}

TEST(Merged, RunsGiveTheirMedianAndInterval) {
    std::vector<std::vector<Check>> runs;
    for (const double value : {1.0, 1.3, 0.9, 1.1, 1.2}) runs.push_back({order("a", std::array{value, 1.0})});
    const Check check = merged(runs).front();
    EXPECT_DOUBLE_EQ(check.value, 1.1);
    EXPECT_DOUBLE_EQ(check.low, 0.9);
    EXPECT_DOUBLE_EQ(check.high, 1.3);
    EXPECT_EQ(check.verdict(), Verdict::undecided);
    runs.push_back({order("a", std::array{std::numeric_limits<double>::quiet_NaN(), 1.0})});
    EXPECT_EQ(merged(runs).front().verdict(), Verdict::differs);
}

TEST(Verdict, IsThatOfTheWorstCheckAndNoStrongerThanTheBasis) {
    const Check good = equal(1, "a", 1);
    const Check bad = equal(1, "b", 2);
    const Check open = over(good, 0.9, 1);
    EXPECT_EQ(verdict_of(std::array{good, notified("c", 7)}, Basis::simulator), Verdict::holds);
    EXPECT_EQ(verdict_of(std::array{good}, Basis::kernel), Verdict::holds);
    EXPECT_EQ(verdict_of(std::array{good}, Basis::calibrated), Verdict::consistent);
    EXPECT_EQ(verdict_of(std::array{good}, Basis::arithmetic), Verdict::consistent);
    EXPECT_EQ(verdict_of(std::array{good, open}, Basis::calibrated), Verdict::undecided);
    EXPECT_EQ(verdict_of(std::array{good, open, bad}, Basis::arithmetic), Verdict::differs);
}

TEST(Verdict, SentenceNamesWhatDoesNotHold) {
    const std::array checks{equal(1, "a", 1), number(2, same_ratio, "b", 3), notified("c", 4)};
    EXPECT_EQ(sentence_of(checks), "a: 1; b: 3 (2, from 1.74 to 2.3: differs); c: 4");
}

}  // namespace
}  // namespace atp::figure
