// SPDX-License-Identifier: Apache-2.0
#include "figure/table.h"

#include <gtest/gtest.h>

#include "figure/chart_table.h"

namespace atp::figure {
namespace {

TEST(Csv, SpecialCharactersAreQuoted) {
    const Table table{.columns = {"name", "value, units"}, .rows = {{"plain", "1.5"}, {"says \"two\"\nlines", "2"}}};
    EXPECT_EQ(to_csv(table), "name,\"value, units\"\nplain,1.5\n\"says \"\"two\"\"\nlines\",2\n");
}

TEST(Csv, NumbersKeepSixDigits) {
    EXPECT_EQ(number_text(1.0 / 3), "0.333333");
    EXPECT_EQ(number_text(123456.7), "123457");
    EXPECT_EQ(number_text(0.00001), "1e-05");
    EXPECT_EQ(number_text(100), "100");
}

TEST(Text, ColumnsAreAligned) {
    const Table table{.columns = {"x", "goodput"}, .rows = {{"1", "43.25"}, {"sixteen", "7"}}};
    EXPECT_EQ(to_text(table), "      x  goodput\n      1    43.25\nsixteen        7\n");
}

TEST(Points, LineChartHasOneRowPerPoint) {
    const Chart chart =
        LineChart{.title = "t",
                  .x = {.label = "jobs"},
                  .y = {},
                  .lines = {{.name = "hash", .x = {1, 2}, .y = {40, 39}}, {.name = "linear", .x = {2}, .y = {14}}}};
    EXPECT_EQ(to_csv(points_of(std::vector{chart})), "chart,series,x,y\nt,hash,1,40\nt,hash,2,39\nt,linear,2,14\n");
    EXPECT_EQ(to_csv(table_of(chart)), "jobs,hash,linear\n1,40,\n2,39,14\n");
}

TEST(Points, BarChartHasItsCategories) {
    const Chart chart = BarChart{
        .title = "t", .y = {}, .categories = {"VGG16", "ResNet50"}, .bars = {{.name = "ATP", .values = {147, 230}}}};
    EXPECT_EQ(to_csv(points_of(std::vector{chart})), "chart,series,x,y\nt,ATP,VGG16,147\nt,ATP,ResNet50,230\n");
    EXPECT_EQ(to_csv(table_of(chart)), ",ATP\nVGG16,147\nResNet50,230\n");
}

}  // namespace
}  // namespace atp::figure
