// SPDX-License-Identifier: Apache-2.0
#include "endpoint/kept_reports.h"

#include <gtest/gtest.h>

namespace atp::endpoint {
namespace {

constexpr Time begin{std::chrono::seconds(1000)};
constexpr Duration after_kept = KeptReports::kept_for + std::chrono::nanoseconds(1);

TEST(KeptReports, ReportIsFoundByItsNumberWhichIsNeverZero) {
    KeptReports reports;
    ASSERT_TRUE(reports.has_room(begin));
    const std::uint32_t first = reports.add("first", begin).number;
    const std::uint32_t second = reports.add("second", begin).number;
    EXPECT_NE(first, 0U);
    EXPECT_NE(first, second);
    EXPECT_EQ(reports.find(first)->text, "first");
    EXPECT_EQ(reports.find(second)->text, "second");
    EXPECT_EQ(reports.newest().number, second);
    EXPECT_EQ(reports.find(0), nullptr);
    EXPECT_EQ(reports.find(second + 1), nullptr);
}

TEST(KeptReports, ReportGoesAfterItsTimeButTheNewestStays) {
    KeptReports reports;
    const std::uint32_t first = reports.add("first", begin).number;
    const std::uint32_t second = reports.add("second", begin).number;
    EXPECT_TRUE(reports.has_room(begin + KeptReports::kept_for));
    EXPECT_NE(reports.find(first), nullptr);
    EXPECT_TRUE(reports.has_room(begin + after_kept));
    EXPECT_EQ(reports.find(first), nullptr);
    EXPECT_NE(reports.find(second), nullptr);
}

TEST(KeptReports, TwoReportsHaveRoomHoweverLongTheyAre) {
    KeptReports reports;
    const std::string longest(2 * KeptReports::most_bytes, 'x');
    reports.add(longest, begin);
    EXPECT_TRUE(reports.has_room(begin));
    reports.add(longest, begin);
    EXPECT_FALSE(reports.has_room(begin));
    EXPECT_TRUE(reports.has_room(begin + after_kept));
}

}  // namespace
}  // namespace atp::endpoint
