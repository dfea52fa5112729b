// SPDX-License-Identifier: Apache-2.0
#include "figure/figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "figure/catalogue.h"

namespace atp::figure {
namespace {

TEST(Figure, NineMeasuresExactlyThree) {
    const auto drawing = draw(*find_figure("fig9"), {.quick = true, .threads = 2});
    ASSERT_TRUE(drawing.has_value());
    EXPECT_EQ(drawing->basis, Basis::arithmetic);
    EXPECT_EQ(drawing->verdict(), Verdict::consistent);
    EXPECT_DOUBLE_EQ(drawing->checks.front().value, 3);
    EXPECT_FALSE(drawing->charts.empty());
}

TEST(Figure, SkippedDrawingReportsItsReason) {
    Drawing drawing;
    drawing.skipped = "no torch here";
    EXPECT_EQ(drawing.verdict(), Verdict::skipped);
    EXPECT_EQ(drawing.ours(), "no torch here");
}

constexpr Input of_claim[] = {{"cost", Origin::from_claim, "8.7"}};
constexpr Input free_ones[] = {{"rate", Origin::paper, "100"}, {"queue", Origin::free, "2"}};

// Holds if the queue is at most 2.
Drawing draw_by_queue(const Lab& lab) {
    Drawing drawing;
    drawing.checks = {order("a", std::array{3.0, lab.free("queue", 2.0)}), notified("seed", double(lab.seed()))};
    return drawing;
}

TEST(Figure, InputFromTheClaimMakesItCalibrated) {
    const Figure figure{.id = "x", .inputs = of_claim, .draw = draw_by_queue};
    EXPECT_EQ(basis_of(figure), Basis::calibrated);
    EXPECT_EQ(basis_of({.basis = Basis::arithmetic, .inputs = of_claim}), Basis::arithmetic);
    EXPECT_EQ(basis_of({.basis = Basis::kernel, .inputs = free_ones}), Basis::kernel);
    EXPECT_EQ(draw(figure, {})->verdict(), Verdict::consistent);
}

TEST(Figure, FreeInputThatTurnsTheVerdictLeavesItUndecided) {
    const Figure figure{.id = "x", .inputs = free_ones, .draw = draw_by_queue};
    const auto drawing = draw(figure, {});
    EXPECT_EQ(drawing->verdict(), Verdict::undecided);
    EXPECT_THAT(drawing->turns, testing::ElementsAre("queue × 2: differs"));
    EXPECT_EQ(draw(figure, {.quick = true})->verdict(), Verdict::holds) << "quick runs vary nothing";
}

TEST(Figure, BusyProcessorsLeaveAMeasurementUndecided) {
    const auto measured = [](double busy) {
        Drawing drawing;
        drawing.basis = Basis::sockets;
        drawing.busiest = busy;
        drawing.checks = {order("a", std::array{3.0, 2.0})};
        return drawing.verdict();
    };
    EXPECT_EQ(measured(0.8), Verdict::holds);
    EXPECT_EQ(measured(0.81), Verdict::undecided);
}

TEST(Figure, MeasurementThatVariesNoFreeInputIsConsistentAtBest) {
    const Figure figure{.id = "x", .basis = Basis::sockets, .inputs = free_ones, .draw = draw_by_queue};
    EXPECT_EQ(draw(figure, {})->verdict(), Verdict::consistent);
    EXPECT_EQ(draw({.id = "x", .basis = Basis::sockets, .draw = draw_by_queue}, {})->verdict(), Verdict::holds);
}

TEST(Figure, RunsHaveSeedsOfTheirOwn) {
    const Figure figure{.id = "x", .draw = draw_by_queue};
    const auto interval = [](const Figure& one, const LabOptions& options) {
        const Check seed = draw(one, options)->checks.back();
        return std::array{seed.low, seed.value, seed.high};
    };
    EXPECT_EQ(interval(figure, {.seed = 3}), (std::array{3.0, 5.0, 7.0}));
    EXPECT_EQ(interval(figure, {.runs = 2, .seed = 3}), (std::array{3.0, 4.0, 4.0}));
    EXPECT_EQ(interval(figure, {.quick = true, .seed = 3}), (std::array{3.0, 3.0, 3.0}));
    EXPECT_EQ(interval({.id = "x", .once = true, .draw = draw_by_queue}, {}), (std::array{1.0, 1.0, 1.0}));
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
