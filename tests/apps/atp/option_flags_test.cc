// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/option_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "comm/option_table.h"

namespace atp::apps {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

comm::Options parse(std::vector<std::string> arguments) {
    comm::Options options;
    Command command("test");
    Flags flags(command, "Options");
    add_option_flags(flags, options, {});
    std::ranges::reverse(arguments);  // the order that CLI11 requires
    command.parse(arguments);
    return options;
}

std::string refusal_of(const std::vector<std::string>& arguments) {
    try {
        parse(arguments);
    } catch (const CLI::ParseError& error) {
        return error.what();
    }
    return {};
}

TEST(OptionFlags, TheDefaultsNeedNoArgument) {
    EXPECT_THAT(option_arguments({}), IsEmpty());
    EXPECT_THAT(option_arguments(parse({})), IsEmpty());
}

// `atp bench` passes its own options unchanged to the processes of its ranks.
TEST(OptionFlags, EachOptionPassesToAChildUnchanged) {
    const std::vector<std::vector<std::string>> lines{
        {"--switch", "a:1"},
        {"--rack", "row 7"},
        {"--host-name", "node7"},
        {"--listen", "10.0.0.1:5000-5009"},
        {"--job-name", "resnet-50"},
        {"--link-rate", "25000000000"},
        {"--uplink", "rack 7"},
        {"--uplink-rate", "100000000000"},
        {"--channels", "4"},
        {"--lanes", "352"},
        {"--lanes", "int16"},
        {"--lanes", "352:int16"},
        {"--window", "64"},
        {"--scaling", "fixed"},
        {"--audit"},
        {"--multicast", "239.192.0.0/16"},
        {"--server", "colocated"},
        {"--dedicated-server", "a:1", "--dedicated-server", "b:2"},
        {"--key-file", "vision.key"},
        {"--seal", "operation"},
        {"--timeout", "1500ms"},
        {"--trace", "rank%r.txt"},
        {"--deadline", "7s"},
        {"--spin", "20us"},
        {"--without", "gso"},
        {"--without", "mmsg,gso,gro"},
    };
    std::vector<std::string> flags;
    for (const auto& line : lines) {
        EXPECT_EQ(option_arguments(parse(line)), line);
        flags.push_back(line.front());
    }
    for (const comm::OptionRow& row : comm::option_table()) {
        EXPECT_TRUE(row.flag.empty() || std::ranges::count(flags, row.flag) != 0) << "no line above has " << row.flag;
    }
}

TEST(OptionFlags, SharedFlagsSetEachOfTheirOptions) {
    const comm::Options both = parse({"--lanes", "352:int16", "--without", "gro,mmsg"});
    EXPECT_EQ(both.lanes, 352U);
    EXPECT_EQ(both.lane_type, tensor::LaneType::int16);
    EXPECT_FALSE(both.mmsg);
    EXPECT_TRUE(both.gso);
    EXPECT_FALSE(both.gro);
}

TEST(OptionFlags, HelpHasBoundsAndDefaultOfEachOption) {
    comm::Options options;
    Command command("test");
    Flags flags(command, "Options");
    add_option_flags(flags, options, {});
    const std::string help = command.help_text("test");
    for (const char* text :
         {"an I/O thread (1 to 64) [1]", "--lanes N|TYPE|N:TYPE           N: Lanes of a packet (2 to 16362)",
          "TYPE: Type of a scaled value in a packet", "N:TYPE: both", "--multicast off|on|GROUPS",
          "(fixed or dynamic) [dynamic]", "called without a timeout (above 0) [300s]",
          "sockets (mmsg, gso, gro, with commas between them) [none]"}) {
        EXPECT_THAT(help, HasSubstr(text));
    }
    EXPECT_THAT(command.text_of(command.get_option("--lanes")).words,
                testing::ElementsAre("int32", "int16", "auto", "int8"));
    EXPECT_THAT(command.text_of(command.get_option("--multicast")).words, testing::ElementsAre("off", "on"));
}

TEST(OptionFlags, RefusalsNameFlagValueAndAcceptedValues) {
    EXPECT_THAT(refusal_of({"--channels", "65"}),
                HasSubstr("--channels: '65' is invalid; use a whole number from 1 to 64"));
    for (const char* lanes : {"1", "int4", "64:", ":int16", "64int16", "64:int16:2", "int16:64"}) {
        EXPECT_THAT(refusal_of({"--lanes", lanes}), AllOf(HasSubstr("--lanes: '" + std::string(lanes) + "'"),
                                                          HasSubstr("from 2 to 16362, int32, int16, auto or int8")));
    }
    for (const char* features : {"gso,tso", "gso,", ""}) {
        EXPECT_THAT(refusal_of({"--without", features}), HasSubstr("mmsg, gso, gro, with commas between them"));
    }
    EXPECT_THAT(refusal_of({"--server", "nowhere"}), HasSubstr("hosts, leaves or racks"));
    EXPECT_THAT(refusal_of({"--deadline", "0"}), HasSubstr("a number above 0 with ns, us, ms or s"));
}

}  // namespace
}  // namespace atp::apps
