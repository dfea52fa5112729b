// SPDX-License-Identifier: Apache-2.0
#include "figure/judgement.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace atp::figure {
namespace {

TEST(Check, HoldsWithinItsBounds) {
    EXPECT_TRUE(at_least(1.2, "a", 1.2).holds());
    EXPECT_FALSE(at_least(1.2, "a", 1.19).holds());
    EXPECT_TRUE(at_most(0.1, "a", 0.1).holds());
    EXPECT_FALSE(at_most(0.1, "a", 0.11).holds());
    EXPECT_TRUE(between(3, 3, "a", 3).holds());
    EXPECT_FALSE(between(3, 3, "a", 3.001).holds());
    EXPECT_TRUE(notified("a", -7).holds());
    EXPECT_FALSE(notified("a", std::numeric_limits<double>::quiet_NaN()).holds());
}

TEST(Check, TextStatesTheBoundAndTheValue) {
    EXPECT_EQ(at_least(1.2, "a", 1).bar_text(), "at least 1.2");
    EXPECT_EQ(at_most(0.1, "a", 1).bar_text(), "at most 0.1");
    EXPECT_EQ(between(0.95, 1.05, "a", 1).bar_text(), "0.95 to 1.05");
    EXPECT_EQ(between(3, 3, "a", 1).bar_text(), "exactly 3");
    EXPECT_EQ(notified("a", 1).bar_text(), "");
    EXPECT_EQ(notified("a", 1.23456).value_text(), "1.23");
    EXPECT_EQ(notified("a", 12345.6).value_text(), "12346");
    EXPECT_EQ(notified("a", 14602998).value_text(), "14602998");
}

TEST(Verdict, HoldsIfAllChecksHold) {
    const std::vector<Check> good{at_least(1, "a", 2), notified("b", 0)};
    EXPECT_EQ(verdict_of(good), Verdict::holds);
    EXPECT_EQ(sentence_of(good), "a: 2; b: 0");
    const std::vector<Check> bad{at_least(1, "a", 2), at_most(1, "b", 1.5)};
    EXPECT_EQ(verdict_of(bad), Verdict::differs);
    EXPECT_EQ(sentence_of(bad), "a: 2; b: 1.5 (not at most 1)");
    EXPECT_EQ(to_string(Verdict::differs), "differs");
}

}  // namespace
}  // namespace atp::figure
