// SPDX-License-Identifier: Apache-2.0
#include "apps/common/command_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/common/description.h"
#include "apps/common/flags.h"

namespace atp::apps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(FlagText, DefaultIsTheBracketAtTheEnd) {
    EXPECT_EQ(flag_text("Most jobs [64]", "").meaning, "Most jobs");
    EXPECT_EQ(flag_text("Most jobs [64]", "").fallback, "64");
    EXPECT_EQ(flag_text("Ports. [none; [::1] too]", "").meaning, "Ports");
    EXPECT_EQ(flag_text("Ports. [none; [::1] too]", "").fallback, "none; [::1] too");
    EXPECT_EQ(flag_text("Form w[:in] of it", "").fallback, "");
}

TEST(FlagText, ValuesAreShortAndLeaveOutWhatTheirNameSays) {
    EXPECT_EQ(flag_text("", "a whole number from 1 to 64").values, "1 to 64");
    EXPECT_EQ(flag_text("", "a whole number from 1 to 4294967295").values, "1 or more");
    EXPECT_EQ(flag_text("", "a whole number from 0 to 18446744073709551615").values, "");
    EXPECT_EQ(flag_text("", "a number from 0 to 1").values, "0 to 1");
    EXPECT_EQ(flag_text("", wait_forms).values, "above 0");
    EXPECT_EQ(flag_text("", duration_forms).values, "");
    EXPECT_EQ(flag_text("", "any name").values, "");
    EXPECT_EQ(flag_text("", "text or json").values, "text or json");
}

TEST(FlagText, WordsAreKnownIfNothingElseIsAccepted) {
    EXPECT_THAT(flag_text("", "trace, debug or off").words, ElementsAre("trace", "debug", "off"));
    EXPECT_THAT(flag_text("", "gloo").words, ElementsAre("gloo"));
    EXPECT_THAT(flag_text("", size_forms).words, IsEmpty());
    EXPECT_THAT(flag_text("", "off, on, or a group").words, IsEmpty());
    EXPECT_THAT(flag_text("", "").words, IsEmpty());
}

class Program : public testing::Test {
  public:
    Program() {
        command_.add_option("ADDRESS", address_, "Address of the switch")->type_name("ADDRESS")->required();
        Flags flags(command_, "Output");
        flags.number("--rows", rows_, 1, 9, "Rows [3]");
        flags.appended(
            "--of", of_, "NAME", [](std::string_view text) { return std::optional<std::string>(text); }, "any name",
            "Show only this");
        flags.flag("--json", json_, "Print JSON");
        command_.add_example("p show 10.0.0.1:4790", "Show it.");
        command_.set_exit({{0, "shown"}, {2, "bad arguments"}});
    }

    CLI::App program_{"A program", "p"};
    Command& command_ = Command::add(program_, "show", "Show a switch");
    std::string address_;
    int rows_ = 3;
    std::vector<std::string> of_;
    bool json_ = false;
};

TEST_F(Program, HelpIsComplete) {
    EXPECT_EQ(command_.help_text("p show"), R"(Show a switch

Usage: p show [FLAGS] ADDRESS

Arguments:
  ADDRESS                         Address of the switch

Output:
  --rows N                        Rows (1 to 9) [3]
  --of NAME                       Show only this; may be repeated
  --json                          Print JSON

Other:
  -h, --help                      Print this help message and exit

Values:
  ADDRESS                         host:port or [host]:port

Example:
  p show 10.0.0.1:4790
      Show it.

Exit status: 0 shown, 2 bad arguments.
)");
}

TEST_F(Program, DescriptionHasWhatTheHelpHas) {
    const auto json = nlohmann::json::parse(description_of(program_), nullptr, false);
    ASSERT_TRUE(json.is_object());
    const auto& command = json["commands"][0];
    EXPECT_EQ(command["name"], "show");
    EXPECT_EQ(command["arguments"][0]["usage"], "ADDRESS");
    const auto& flags = command["groups"][0]["flags"];
    ASSERT_EQ(flags.size(), 3U);
    EXPECT_EQ(flags[0]["names"][0], "--rows");
    EXPECT_EQ(flags[0]["values"], "1 to 9");
    EXPECT_EQ(flags[0]["default"], "3");
    EXPECT_TRUE(flags[1]["repeats"].get<bool>());
    EXPECT_FALSE(flags[2].contains("placeholder"));
    EXPECT_EQ(command["exit"][1]["when"], "bad arguments");
}

}  // namespace
}  // namespace atp::apps
