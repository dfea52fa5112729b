// SPDX-License-Identifier: Apache-2.0
// `atp-lab plan` as a user runs it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/shell.h"

namespace atp::plan {
namespace {

const std::string examples = std::string(ATP_SOURCE_DIR) + "/examples/";
const std::string both = "--topology " + examples + "cluster.toml --jobs " + examples + "jobs.toml";

using test::Outcome;

Outcome run_plan(const std::string& flags) {
    return test::shell(std::string(ATP_PROGRAM) + " plan " + flags + " 2>&1");
}

bool says(const Outcome& outcome, const std::string& words) { return outcome.output.find(words) != std::string::npos; }

TEST(PlanCommand, ExamplesArePlanned) {
    const Outcome outcome = run_plan(both);
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    for (const char* words : {"vision", "text", "leaf1", "Which to buy first", "limited by", "Not modelled"}) {
        EXPECT_TRUE(says(outcome, words)) << words << " in\n" << outcome.output;
    }
}

TEST(PlanCommand, JsonPrintsOneObject) {
    const Outcome outcome = run_plan(both + " --json");
    EXPECT_EQ(outcome.status, 0);
    const auto json = nlohmann::json::parse(outcome.output, nullptr, false);
    ASSERT_TRUE(json.is_object()) << outcome.output;
    EXPECT_EQ(json["jobs"].size(), 2U);
    EXPECT_EQ(json["switches"].size(), 3U);
}

TEST(PlanCommand, HelpShowsAnExample) {
    const Outcome outcome = run_plan("--help");
    EXPECT_EQ(outcome.status, 0);
    EXPECT_TRUE(says(outcome, "atp-lab plan --topology cluster.toml --jobs jobs.toml")) << outcome.output;
    EXPECT_TRUE(says(outcome, "workers = { leaf1 = 4, leaf2 = 4 }")) << outcome.output;
}

TEST(PlanCommand, BadArgumentsAndFilesExitWithStatus2) {
    EXPECT_EQ(run_plan("").status, 2);
    EXPECT_EQ(run_plan("--topology " + examples + "cluster.toml").status, 2);
    EXPECT_EQ(run_plan(both + " --unknown").status, 2);
    const Outcome missing = run_plan("--topology /nowhere.toml --jobs " + examples + "jobs.toml");
    EXPECT_EQ(missing.status, 2);
    EXPECT_TRUE(says(missing, "atp-lab plan: /nowhere.toml: No such file or directory")) << missing.output;
    const Outcome folder = run_plan("--topology " + examples + "cluster.toml --jobs " + examples);
    EXPECT_EQ(folder.status, 2);
    EXPECT_TRUE(says(folder, "atp-lab plan: " + examples + ": Is a directory")) << folder.output;
    const Outcome swapped = run_plan("--topology " + examples + "jobs.toml --jobs " + examples + "cluster.toml");
    EXPECT_EQ(swapped.status, 2);
    EXPECT_TRUE(says(swapped, "use [[switch]]")) << swapped.output;
}

}  // namespace
}  // namespace atp::plan
