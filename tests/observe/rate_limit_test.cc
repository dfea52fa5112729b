// SPDX-License-Identifier: Apache-2.0
#include "observe/rate_limit.h"

#include <gtest/gtest.h>

namespace atp::observe {
namespace {

using std::chrono::seconds;

constexpr RateLimit::Config three_in_ten_seconds{.most = 3, .period = seconds(10)};
constexpr Time begin{seconds(1000)};

TEST(RateLimit, LineBeyondTheLimitIsSuppressedAndCounted) {
    RateLimit limit(2, three_in_ten_seconds);
    for (int line = 0; line < 3; ++line) EXPECT_TRUE(limit.admit(0, begin));
    for (int line = 0; line < 5; ++line) EXPECT_FALSE(limit.admit(0, begin + seconds(9)));
    EXPECT_FALSE(limit.poll_suppressed(begin + seconds(9))) << "its period is not over";
    const auto suppressed = limit.poll_suppressed(begin + seconds(10));
    ASSERT_TRUE(suppressed);
    EXPECT_EQ(suppressed->kind, 0U);
    EXPECT_EQ(suppressed->count, 5U);
    EXPECT_FALSE(limit.poll_suppressed(begin + seconds(10)));
}

TEST(RateLimit, FloodOfOneKindLeavesTheOthersTheirLines) {
    RateLimit limit(2, three_in_ten_seconds);
    for (int line = 0; line < 100; ++line) static_cast<void>(limit.admit(0, begin));
    EXPECT_TRUE(limit.admit(1, begin));
}

TEST(RateLimit, NextPeriodBeginsWithItsFirstLine) {
    RateLimit limit(1, three_in_ten_seconds);
    for (int line = 0; line < 4; ++line) static_cast<void>(limit.admit(0, begin));
    for (int line = 0; line < 3; ++line) EXPECT_TRUE(limit.admit(0, begin + seconds(25)));
    EXPECT_FALSE(limit.admit(0, begin + seconds(34)));
    EXPECT_TRUE(limit.admit(0, begin + seconds(35)));
}

// A host that is refused again and again must not hide that another one was.
TEST(RateLimit, FloodOfOneSourceLeavesTheOthersTheirLines) {
    RateLimit limit(2, three_in_ten_seconds);
    for (int line = 0; line < 3; ++line) EXPECT_TRUE(limit.admit(0, begin, 66));
    for (int line = 0; line < 100; ++line) EXPECT_FALSE(limit.admit(0, begin, 66));
    for (std::uint64_t source = 1; source < 6; ++source) EXPECT_TRUE(limit.admit(0, begin, source)) << source;
    EXPECT_TRUE(limit.admit(1, begin, 66)) << "of another kind";
    EXPECT_TRUE(limit.admit(0, begin)) << "without a source";
    EXPECT_EQ(limit.poll_suppressed(begin + seconds(10))->count, 100U);
    EXPECT_TRUE(limit.admit(0, begin + seconds(10), 66));
}

TEST(RateLimit, AllSourcesTogetherHaveTenTimesTheLinesOfOne) {
    RateLimit limit(1, three_in_ten_seconds);
    int admitted = 0;
    for (std::uint64_t source = 1; source <= 1000; ++source) admitted += limit.admit(0, begin, source) ? 1 : 0;
    EXPECT_EQ(admitted, 30);
}

TEST(RateLimit, EndReportsAllCounts) {
    RateLimit limit(1, three_in_ten_seconds);
    for (int line = 0; line < 5; ++line) static_cast<void>(limit.admit(0, begin));
    const auto suppressed = limit.poll_suppressed(never);
    ASSERT_TRUE(suppressed);
    EXPECT_EQ(suppressed->count, 2U);
}

}  // namespace
}  // namespace atp::observe
