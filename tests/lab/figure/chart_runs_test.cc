// SPDX-License-Identifier: Apache-2.0
#include "figure/chart_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace atp::figure {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<Chart> lines(std::vector<Line> all) {
    return {LineChart{.title = "t", .x = {.label = "x"}, .lines = std::move(all)}};
}

const Line& line_of(const std::vector<Chart>& charts) { return std::get<LineChart>(charts.front()).lines.front(); }

TEST(ChartRuns, PointsAreMediansWithTheirInterval) {
    const auto run = [](double value) { return lines({{.name = "a", .x = {1, 2}, .y = {value, 10 * value}}}); };
    const std::vector<Chart> charts = merged(std::vector{run(3), run(1), run(2)});
    EXPECT_THAT(line_of(charts).y, ElementsAre(2, 20));
    EXPECT_THAT(line_of(charts).low, ElementsAre(1, 10));
    EXPECT_THAT(line_of(charts).high, ElementsAre(3, 30));
}

TEST(ChartRuns, CurveWithOtherPointsInEachRunIsThatOfTheFirst) {
    const std::vector<Chart> charts =
        merged(std::vector{lines({{.name = "a", .x = {1}, .y = {5}}}), lines({{.name = "a", .x = {2}, .y = {7}}})});
    EXPECT_THAT(line_of(charts).y, ElementsAre(5));
    EXPECT_THAT(line_of(charts).low, IsEmpty());
}

TEST(ChartRuns, RunWithoutAValueLeavesNone) {
    const auto run = [](double value) {
        return std::vector<Chart>{
            BarChart{.title = "t", .categories = {"c"}, .bars = {{.name = "a", .values = {value}}}}};
    };
    const std::vector<Chart> charts = merged(std::vector{run(1), run(std::nan("")), run(2)});
    EXPECT_TRUE(std::isnan(std::get<BarChart>(charts.front()).bars.front().values.front()));
}

Line measured_line(double low, double value, double high) {
    return {.name = "ATP", .x = {1, 2}, .y = {value, 100}, .low = {low, 100}, .high = {high, 100}};
}
Line simulated_line(double value) { return {.name = "ATP" + std::string(simulated), .x = {1, 2}, .y = {value, 101}}; }

TEST(ChartRuns, GapIsADifferenceBeyondFifteenPercentAndTheRounds) {
    const auto gaps = [](double low, double high, double calculated) {
        return gaps_of(lines({measured_line(low, 100, high), simulated_line(calculated)}));
    };
    EXPECT_THAT(gaps(99, 101, 120), ElementsAre("ATP at x = 1: the simulator has +20 % of what was measured"));
    EXPECT_THAT(gaps(99, 101, 80), ElementsAre("ATP at x = 1: the simulator has -20 % of what was measured"));
    EXPECT_THAT(gaps(99, 101, 114), IsEmpty()) << "less than 15 %";
    EXPECT_THAT(gaps(99, 121, 120), IsEmpty()) << "within the rounds";
    EXPECT_THAT(gaps_of(lines({measured_line(1, 1, 1)})), IsEmpty()) << "nothing was simulated";
}

TEST(ChartRuns, GapOfBarsNamesItsCategory) {
    const std::vector<Chart> charts{BarChart{
        .title = "t",
        .categories = {"VGG16", "ResNet50"},
        .bars = {{.name = "ATP", .values = {1, 2}}, {.name = "ATP" + std::string(simulated), .values = {1, 3}}}}};
    EXPECT_THAT(gaps_of(charts), ElementsAre("ATP at ResNet50: the simulator has +50 % of what was measured"));
}

}  // namespace
}  // namespace atp::figure
