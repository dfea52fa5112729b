// SPDX-License-Identifier: Apache-2.0
#include "figure/figure.h"

#include <gtest/gtest.h>

#include "figure/catalogue.h"

namespace atp::figure {
namespace {

TEST(Figure, NineMeasuresExactlyThree) {
    const auto drawing = draw(*find_figure("fig9"), {.quick = true, .threads = 2});
    ASSERT_TRUE(drawing.has_value());
    EXPECT_EQ(drawing->verdict(), Verdict::holds);
    EXPECT_DOUBLE_EQ(drawing->checks.front().value, 3);
    EXPECT_FALSE(drawing->charts.empty());
}

TEST(Figure, SkippedDrawingReportsItsReason) {
    Drawing drawing;
    drawing.skipped = "no torch here";
    EXPECT_EQ(drawing.verdict(), Verdict::skipped);
    EXPECT_EQ(drawing.ours(), "no torch here");
}

TEST(Figure, FailedRunIsReportedWithItsScenario) {
    const Figure figure{.id = "x", .draw = [](const Lab& lab) {
                            sim::Scenario stuck;
                            stuck.faults.loss = 1;
                            stuck.time_limit = Time(std::chrono::milliseconds(1));
                            (void)lab.run(stuck);
                            return Drawing{};
                        }};
    const auto drawing = draw(figure, {});
    ASSERT_FALSE(drawing.has_value());
    EXPECT_FALSE(drawing.error().interrupted);
    EXPECT_NE(drawing.error().text.find("star:4"), std::string::npos) << drawing.error().text;
}

TEST(Figure, ImpossibleScenarioIsReportedWithTheReason) {
    const Figure figure{.id = "x", .draw = [](const Lab& lab) {
                            sim::Scenario none;
                            none.jobs = 0;
                            (void)lab.run(none);
                            return Drawing{};
                        }};
    const auto drawing = draw(figure, {});
    ASSERT_FALSE(drawing.has_value());
    EXPECT_NE(drawing.error().text.find("--jobs 0"), std::string::npos) << drawing.error().text;
}

TEST(Figure, StopFlagInterruptsTheDrawing) {
    const std::atomic<bool> stop = true;
    const auto drawing = draw(*find_figure("fig9"), {.quick = true, .stop = &stop});
    ASSERT_FALSE(drawing.has_value());
    EXPECT_TRUE(drawing.error().interrupted);
}

}  // namespace
}  // namespace atp::figure
