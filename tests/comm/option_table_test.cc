// SPDX-License-Identifier: Apache-2.0
#include "comm/option_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace atp::comm {
namespace {

using testing::HasSubstr;

bool has_field(const OptionRow& row) { return !std::holds_alternative<std::monostate>(row.field); }

TEST(OptionTable, LongNamesAreRefusedBecauseRanksSendThem) {
    Options options;
    options.rack = std::string(255, 'r');
    EXPECT_EQ(option_problem(options), std::nullopt);
    options.rack += 'r';
    EXPECT_EQ(option_problem(options), "rack has 256 bytes; use at most 255");
    options.rack.clear();
    options.dedicated_servers.assign(1000, "a-server-with-a-long-name:4790");
    EXPECT_TRUE(option_problem(options)->starts_with("dedicated_servers: the options of all ranks have 3"));
}

TEST(OptionTable, EachDefaultIsAcceptedAndIsTheOneOfOptions) {
    const Options defaults;
    for (const OptionRow& row : option_table()) {
        if (!has_field(row)) continue;
        Options options;
        const auto set = set_option(options, row.name, row.fallback);
        ASSERT_TRUE(set) << to_string(set.error());
        EXPECT_EQ(option_text(options, row), option_text(defaults, row)) << row.name;
    }
    EXPECT_EQ(option_problem(defaults), std::nullopt);
}

TEST(OptionTable, NamesFieldsAndVariablesAreUnique) {
    std::set<std::string_view> names;
    std::set<std::string_view> others;
    for (const OptionRow& row : option_table()) {
        EXPECT_TRUE(names.insert(row.name).second) << row.name;
        for (const std::string_view other : {row.c_field, row.environment}) {
            EXPECT_TRUE(other.empty() || others.insert(other).second) << other;
        }
        EXPECT_FALSE(row.help.empty() || accepted_values(row).empty() || default_text(row).empty()) << row.name;
        EXPECT_EQ(find_option(row.name), &row);
    }
    EXPECT_EQ(find_option("no_option"), nullptr);
}

// Texts that differ from the default; a type without a text here fails the test.
std::string another_text(const OptionRow& row) {
    switch (row.type) {
        case OptionType::text: return "another";
        case OptionType::list: return "a:1,b:2";
        case OptionType::cores: return "3,1";
        case OptionType::count: return std::to_string(row.least + 6);
        case OptionType::power: return "64";
        case OptionType::number: return "0.1";
        case OptionType::rate: return "25000000000";
        case OptionType::flag: return row.fallback == "true" ? "false" : "true";
        case OptionType::scaling: return "fixed";
        case OptionType::seal: return "operation";
        case OptionType::lane_type: return "int16";
        case OptionType::server_place: return "colocated";
        case OptionType::multicast: return "239.1.0.0/20";
        case OptionType::time:
        case OptionType::wait: return "1500us";
        case OptionType::file: break;
    }
    return {};
}

TEST(OptionTable, EachTextThatIsSetIsTheTextThatIsPrinted) {
    for (const OptionRow& row : option_table()) {
        if (!has_field(row)) continue;
        Options options;
        ASSERT_TRUE(set_option(options, row.name, another_text(row))) << row.name;
        EXPECT_EQ(option_text(options, row), another_text(row)) << row.name;
    }
}

TEST(OptionTable, RefusalsNameOptionValueAndAcceptedValues) {
    const std::vector<std::vector<std::string>> refused{
        {"channels", "0", "a whole number from 1 to 64"},
        {"channels", "65", "a whole number from 1 to 64"},
        {"channels", "2x", "a whole number from 1 to 64"},
        {"lanes", "1", "a whole number from 2 to 16362"},
        {"lanes", "16363", "a whole number from 2 to 16362"},
        {"window", "3", "a power of two from 1 to 65536"},
        {"window", "131072", "a power of two from 1 to 65536"},
        {"scale", "0", "a number above 0"},
        {"scale", "nan", "a number above 0"},
        {"scale", "inf", "a number above 0"},
        {"scaling", "static", "fixed or dynamic"},
        {"lane_type", "int4", "int32, int16, auto or int8"},
        {"audit", "yes", "true, on, false or off"},
        {"multicast", "10.0.0.0/8", "off, on, or IPv4 groups such as 239.192.0.0/16"},
        {"server", "elsewhere", "switch, colocated, dedicated, auto, hosts, leaves or racks"},
        {"dedicated_servers", "a:1,", "host:port"},
        {"join_timeout", "0", "a number above 0 with ns, us, ms or s"},
        {"timeout", "5", "a number above 0 with ns, us, ms or s"},
        {"spin", "soon", "a number with ns, us, ms or s"},
        {"cores", "1,-1", "numbers of processor cores"},
        {"generation", "4294967296", "a whole number from 0 to 4294967295"},
    };
    for (const auto& row : refused) {
        Options options;
        const auto set = set_option(options, row[0], row[1]);
        ASSERT_FALSE(set) << row[0] << " " << row[1];
        EXPECT_EQ(set.error().reason, Reason::malformed);
        EXPECT_EQ(set.error().text, row[0] + ": '" + row[1] + "' is invalid; use " + row[2]);
    }
    Options options;
    for (const char* name : {"no_option", "topology"}) {
        const auto set = set_option(options, name, "1");
        ASSERT_FALSE(set) << name;
        EXPECT_THAT(set.error().text, HasSubstr(name));
    }
}

TEST(OptionTable, ZeroIsAcceptedWhereItIsTheDefault) {
    Options options;
    for (const char* name : {"lanes", "window", "generation", "busy_poll_us"})
        EXPECT_TRUE(set_option(options, name, "0"));
    EXPECT_TRUE(set_option(options, "spin", "0"));
}

TEST(OptionTable, ValuesOutsideOfTheirBoundsAreAProblem) {
    const auto problem = [](const auto& change) {
        Options options;
        change(options);
        return option_problem(options).value_or("none");
    };
    EXPECT_EQ(problem([](Options& options) { options.channels = 65; }),
              "channels: '65' is invalid; use a whole number from 1 to 64");
    EXPECT_THAT(problem([](Options& options) { options.lanes = 1; }), HasSubstr("lanes: '1'"));
    EXPECT_THAT(problem([](Options& options) { options.window = 3; }), HasSubstr("window: '3'"));
    EXPECT_THAT(problem([](Options& options) { options.scale = -1; }), HasSubstr("scale: '-1'"));
    EXPECT_THAT(problem([](Options& options) { options.server = ServerPlace{7}; }), HasSubstr("server: '7'"));
    EXPECT_THAT(problem([](Options& options) { options.lane_type = tensor::LaneType{4}; }),
                HasSubstr("lane_type: '4'"));
}

// Normative, docs/spec/formation.md#procedure: ranks of other implementations compare these bytes.
TEST(AgreedText, OfTheDefaultsIsTheOneOfTheProtocolPage) {
    EXPECT_EQ(agreed_text({}),
              "version=5 channels=1 lanes=0 window=0 scale=100000000 scaling=dynamic lane_type=auto "
              "audit=false multicast=off server=3 host_level=true seal=none");
}

TEST(AgreedText, OfOtherValuesHasEachInItsPlace) {
    Options options;
    options.channels = 4;
    options.lanes = 352;
    options.window = 64;
    options.scale = 0.1;
    options.scaling = tensor::Scaling::fixed;
    options.lane_type = tensor::LaneType::int16;
    options.audit = true;
    options.multicast = *control::parse_multicast("239.1.0.0/20");
    options.server = ServerPlace::dedicated;
    options.dedicated_servers = {"a:1", "b:2"};
    options.seal = Seal::operation;
    EXPECT_EQ(agreed_text(options),
              "version=5 channels=4 lanes=352 window=64 scale=0.1 scaling=fixed lane_type=int16 "
              "audit=true multicast=239.1.0.0/20 server=2 a:1 b:2 host_level=true seal=operation");
}

TEST(AgreedText, DiffersExactlyIfAnAgreedOptionDiffers) {
    for (const OptionRow& row : option_table()) {
        if (!has_field(row)) continue;
        Options options;
        ASSERT_TRUE(set_option(options, row.name, another_text(row))) << row.name;
        EXPECT_EQ(agreed_text(options) != agreed_text({}), row.scope == OptionScope::agreed) << row.name;
    }
}

}  // namespace
}  // namespace atp::comm
