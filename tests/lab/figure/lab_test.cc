// SPDX-License-Identifier: Apache-2.0
#include "figure/lab.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>

namespace atp::figure {
namespace {

std::vector<sim::Scenario> some_points() {
    std::vector<sim::Scenario> points;
    for (unsigned jobs = 1; jobs <= 6; ++jobs) {
        sim::Scenario point;
        point.jobs = jobs;
        point.bytes = 40'000;
        point.aggregators = 64;
        point.faults.loss = 0.01;
        points.push_back(point);
    }
    return points;
}

std::string run_on(unsigned threads, std::uint64_t seed) {
    std::string text;
    for (const sim::Report& report : Lab({.seed = seed, .threads = threads}).run(some_points())) {
        text += to_json(report);
    }
    return text;
}

TEST(Lab, ResultsAreTheSameOnOneThreadAndOnTwo) {
    EXPECT_EQ(run_on(1, 7), run_on(2, 7));
    EXPECT_NE(run_on(2, 7), run_on(2, 8));
}

TEST(Lab, ProgressEndsAtOne) {
    std::mutex mutex;
    std::vector<double> shares;
    const LabOptions options{.threads = 2, .progress = [&](double share) {
                                 const std::scoped_lock lock(mutex);
                                 shares.push_back(share);
                             }};
    (void)Lab(options).run(some_points());
    ASSERT_FALSE(shares.empty());
    EXPECT_DOUBLE_EQ(shares.back(), 1);
}

TEST(Lab, QuickSelectsTheFirstValue) {
    EXPECT_EQ(Lab({.quick = true}).pick(1, 2), 1);
    EXPECT_EQ(Lab({.quick = false}).pick(1, 2), 2);
}

TEST(Lab, OutputOfACommandIsReturned) {
    const Lab lab({.command = [](const std::vector<std::string>& command) -> tl::expected<std::string, CommandFailure> {
        if (command.size() == 2) return command.back();
        return tl::unexpected(CommandFailure{.text = "no argument", .lacks = command.front() == "tool"});
    }});
    EXPECT_EQ(lab.output_of({"echo", "hello"}), "hello");
    EXPECT_THROW((void)lab.output_of({"tool"}), Lacking);
    try {
        (void)lab.output_of({"echo"});
        ADD_FAILURE() << "it has failed";
    } catch (const Lacking&) {
        ADD_FAILURE() << "nothing is lacking";
    } catch (const Failed&) {  // NOLINT(bugprone-empty-catch): as expected
    }
    EXPECT_THROW((void)Lab({}).output_of({"echo", "hello"}), Failed);
}

TEST(Lab, KeptOutputOfACommandIsForgottenAlone) {
    const auto folder = std::filesystem::path(testing::TempDir()) / ("atp_lab_test_" + std::to_string(getpid()));
    int runs = 0;
    const Lab lab({.command = [&](const auto&) { return std::to_string(++runs); }, .kept = folder});
    EXPECT_EQ(lab.kept_output_of({"a", "b"}), "1");
    EXPECT_EQ(lab.kept_output_of({"a", "b"}), "1") << "kept";
    EXPECT_EQ(lab.kept_output_of({"a", "c"}), "2") << "another command";
    std::ofstream(folder / "own.txt") << "text";
    forget(folder);
    EXPECT_EQ(lab.kept_output_of({"a", "b"}), "3");
    EXPECT_TRUE(std::filesystem::exists(folder / "own.txt")) << "no result";
    std::filesystem::remove_all(folder);
    forget(folder);
}

}  // namespace
}  // namespace atp::figure
