// SPDX-License-Identifier: Apache-2.0
#include "figure/page.h"

#include "figure/files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace atp::figure {
namespace {

constexpr Input inputs[] = {{"queue", Origin::free, "2 MB"}};
const Figure figure{.id = "fig0",
                    .title = "Nothing",
                    .source = "ATP, section 0",
                    .claim = "It is so.",
                    .setup = "One run.",
                    .differences = "Because.",
                    .inputs = inputs,
                    .draw = nullptr};

Drawn drawn_with(std::vector<Check> checks) {
    Drawn drawn{.figure = &figure, .drawing = {}};
    drawn.drawing.checks = std::move(checks);
    drawn.drawing.charts = {LineChart{.title = "t", .lines = {{.name = "a", .x = {1}, .y = {2}}}}};
    return drawn;
}

TEST(Page, PageHasClaimPictureVerdictAndCommand) {
    const Drawn drawn = drawn_with({number(2, same_ratio, "a|b", 2.1), notified("c", 4)});
    const std::string page =
        page_of(std::span(&drawn, 1), {.quick = true, .runs = 2, .seed = 5}, "pictures", "<!-- origin -->");
    for (const char* text :
         {"reproduced\n\n<!-- origin -->\n\nWritten by", "## fig0: Nothing", "(ATP, section 0): It is so.", "One run.",
          "![Nothing](pictures/fig0.svg)", "**Inputs**: queue (free: 2 MB).",
          "| a\\|b | 2.1 | 2, from 1.74 to 2.3 | +5.0 % | holds |", "| c | 4 |  |  | not judged |",
          "**Verdict: holds** (basis: simulator). Because.",
          "`atp-lab figure fig0 --quick --runs 2 --seed 5` ([points](pictures/fig0.csv))",
          "| [fig0](#fig0) | Nothing | simulator | holds |"}) {
        EXPECT_NE(page.find(text), std::string::npos) << text << "\nis not in\n" << page;
    }
}

TEST(Page, FreeInputsThatDecideAreNamed) {
    Drawn drawn = drawn_with({number(2, same_ratio, "a", 2.1)});
    drawn.drawing.turns = {"queue × 2: differs"};
    const std::string page = page_of(std::span(&drawn, 1), {}, "pictures", "");
    EXPECT_NE(page.find("**Verdict: undecided** (basis: simulator). Inputs decide: queue × 2: differs."),
              std::string::npos)
        << page;
}

TEST(Page, DifferenceWithoutAReasonHasAnUnknownCause) {
    Figure unexplained = figure;
    unexplained.differences = "";
    Drawn drawn = drawn_with({number(2, same_ratio, "a", 3)});
    drawn.figure = &unexplained;
    const std::string page = page_of(std::span(&drawn, 1), {}, "pictures", "");
    EXPECT_NE(page.find("**Verdict: differs** (basis: simulator). Cause unknown."), std::string::npos) << page;
}

TEST(Page, SkippedFigureShowsItsReason) {
    Drawn drawn = drawn_with({});
    drawn.drawing.skipped = "no torch";
    const std::string page = page_of(std::span(&drawn, 1), {}, "pictures", "");
    EXPECT_NE(page.find("**Skipped**: no torch"), std::string::npos);
    EXPECT_EQ(page.find("svg"), std::string::npos);
}

class Files : public testing::Test {
  protected:
    void SetUp() override { std::filesystem::remove_all(folder_); }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    const std::filesystem::path folder_ =
        std::filesystem::path(testing::TempDir()) / ("atp_figure_page_test_" + std::to_string(getpid()));
};

TEST_F(Files, AreWrittenIntoANewFolder) {
    const Drawn drawn = drawn_with({});
    ASSERT_TRUE(write_files(drawn, {}, folder_ / "new").has_value());
    std::string first_line;
    std::getline(std::ifstream(folder_ / "new" / "fig0.csv"), first_line);
    EXPECT_EQ(first_line, "chart,series,x,y");
    EXPECT_TRUE(std::filesystem::exists(folder_ / "new" / "fig0.svg"));
}

TEST_F(Files, OfASkippedFigureAreAbsent) {
    Drawn drawn = drawn_with({});
    drawn.drawing.skipped = "no torch";
    ASSERT_TRUE(write_files(drawn, {}, folder_).has_value());
    EXPECT_FALSE(std::filesystem::exists(folder_));
}

TEST_F(Files, ThatCannotBeWrittenAreNamed) {
    const auto full = write_file("/dev/full", "text");
    ASSERT_FALSE(full.has_value());
    EXPECT_EQ(full.error(), "cannot write /dev/full: No space left on device");
    const auto nowhere = write_files(drawn_with({}), {}, "/proc/figures");
    ASSERT_FALSE(nowhere.has_value());
    EXPECT_NE(nowhere.error().find("cannot write /proc/figures: "), std::string::npos) << nowhere.error();
}

}  // namespace
}  // namespace atp::figure
