// SPDX-License-Identifier: Apache-2.0
// `atp-lab figure` as a user runs it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "support/shell.h"

namespace atp::figure {
namespace {

using test::Outcome;

Outcome figure(const std::string& arguments, const std::string& errors = "2>&1") {
    return test::shell(ATP_PROGRAM " figure " + arguments + " " + errors);
}

std::string content_of(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

class FigureCommand : public testing::Test {
  protected:
    void SetUp() override { std::filesystem::create_directories(folder_); }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    const std::filesystem::path folder_ =
        std::filesystem::path(testing::TempDir()) /
        ("atp_figure_command_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
};

TEST_F(FigureCommand, ListPrintsEveryFigure) {
    const Outcome list = figure("list");
    EXPECT_EQ(list.status, 0);
    EXPECT_NE(list.output.find("fig9 "), std::string::npos);
    const auto json = nlohmann::json::parse(figure("list --json").output);
    EXPECT_EQ(json.at(0).at("id"), "fig3");
    EXPECT_FALSE(json.at(0).at("claim").get<std::string>().empty());
}

TEST_F(FigureCommand, FigureWritesPointsAndPicture) {
    const Outcome outcome = figure("fig9 --quick --out " + folder_.string());
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_NE(outcome.output.find("verdict: consistent"), std::string::npos) << outcome.output;
    EXPECT_NE(content_of(folder_ / "fig9.csv").find("ATP"), std::string::npos);
    EXPECT_NE(content_of(folder_ / "fig9.svg").find("</svg>"), std::string::npos);
}

TEST_F(FigureCommand, JsonPrintsOneArray) {
    const Outcome outcome = figure("fig9 --quick --json --out " + folder_.string(), "");
    EXPECT_EQ(outcome.status, 0);
    const auto json = nlohmann::json::parse(outcome.output);
    ASSERT_EQ(json.size(), 1U);
    EXPECT_EQ(json[0].at("id"), "fig9");
    EXPECT_EQ(json[0].at("verdict"), "consistent");
    EXPECT_EQ(json[0].at("basis"), "arithmetic");
    EXPECT_EQ(json[0].at("checks").at(0).at("deviation"), 0);
    EXPECT_EQ(json[0].at("checks").at(0).at("deviation_text"), "+0.0 %");
    EXPECT_NE(json[0].at("ours").get<std::string>().find(": 3"), std::string::npos);
    EXPECT_FALSE(json[0].at("claim").get<std::string>().empty());
}

TEST_F(FigureCommand, OutputIsTheSameOnEveryNumberOfThreads) {
    const auto output_on = [this](const std::string& threads) {
        const Outcome outcome =
            figure("beyond-mtu --quick --seed 3 --threads " + threads + " --out " + folder_.string());
        return outcome.output + content_of(folder_ / "beyond-mtu.csv");
    };
    EXPECT_EQ(output_on("1"), output_on("2"));
}

TEST_F(FigureCommand, UnknownFigureIsRefusedWithSimilarNames) {
    const Outcome near = figure("fig99");
    EXPECT_EQ(near.status, 2);
    EXPECT_NE(near.output.find("figure fig99 is unknown; similar: "), std::string::npos) << near.output;
    EXPECT_NE(figure("whatever").output.find("`atp-lab figure list`"), std::string::npos);
    EXPECT_EQ(figure("").status, 2);
}

TEST_F(FigureCommand, UnwritableFileIsReportedByName) {
    const Outcome folder = figure("fig9 --quick --out /proc/figures");
    EXPECT_EQ(folder.status, 1);
    EXPECT_NE(folder.output.find("cannot write /proc/figures: "), std::string::npos) << folder.output;
    std::filesystem::create_symlink("/dev/full", folder_ / "fig9.svg");
    const Outcome full = figure("fig9 --quick --out " + folder_.string());
    EXPECT_EQ(full.status, 1);
    EXPECT_NE(full.output.find("fig9.svg: No space left on device"), std::string::npos) << full.output;
}

TEST_F(FigureCommand, InterruptStopsWithoutAPage) {
    const std::string command = "timeout --preserve-status --signal=INT --kill-after=20 0.5 " ATP_PROGRAM
                                " figure all --out " +
                                folder_.string();
    const int status = std::system((command + " >/dev/null 2>&1; test $? -eq 130").c_str());
    EXPECT_EQ(status, 0);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "figures.md"));
}

}  // namespace
}  // namespace atp::figure
