// SPDX-License-Identifier: Apache-2.0
// Messages that ask a switch, and its answers. control_test.cc tests truncation and random bytes of all messages.
#include "wire/query_messages.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "support/control_messages.h"
#include "wire/control.h"

namespace atp::wire {
namespace {

using testing::encoded;
using Bytes = std::vector<std::byte>;

const Welcome two_switches{.nonce = 0x1122334455667788,
                           .received_bytes = 1500,
                           .path = {{.id = 1, .aggregators = 2, .lanes = 3},
                                    {.id = std::numeric_limits<std::uint64_t>::max(), .aggregators = 5, .lanes = 6}},
                           .software = "atp 0.1.0"};

TEST(QueryMessages, WelcomeDecodesToItsFields) {
    const auto read = decode<Welcome>(encoded(two_switches));
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->nonce, two_switches.nonce);
    EXPECT_EQ(read->received_bytes, 1500U);
    EXPECT_EQ(read->path, two_switches.path);
    EXPECT_EQ(read->software, "atp 0.1.0");
}

TEST(QueryMessages, RequestsAndReportsDecodeToTheirFields) {
    EXPECT_EQ(decode<Hello>(encoded(Hello{.nonce = 0xFEDCBA9876543210}))->nonce, 0xFEDCBA9876543210U);
    const auto stats = decode<Stats>(encoded(Stats{.nonce = 1, .snapshot = 2, .part = 3, .cookie = 4}));
    ASSERT_TRUE(stats.has_value());
    EXPECT_EQ(stats->nonce, 1U);
    EXPECT_EQ(stats->snapshot, 2U);
    EXPECT_EQ(stats->part, 3U);
    EXPECT_EQ(stats->cookie, 4U);
    const auto report = decode<Report>(
        encoded(Report{.nonce = 1, .snapshot = 2, .part = 3, .parts = 4, .text = std::string(report_part_bytes, 'x')}));
    ASSERT_TRUE(report.has_value());
    EXPECT_EQ(report->part, 3U);
    EXPECT_EQ(report->parts, 4U);
    EXPECT_EQ(report->text, std::string(report_part_bytes, 'x'));
}

TEST(QueryMessages, StatsRequestIsAsLongAsItsLongestAnswer) {
    const Bytes question = encoded(Stats{.nonce = 1, .snapshot = 0, .part = 0});
    const Bytes answer = encoded(
        Report{.nonce = 1, .snapshot = 1, .part = 0, .parts = 1, .text = std::string(2 * report_part_bytes, 'x')});
    EXPECT_EQ(question.size(), answer.size());
    const Bytes shorter(question.begin(), question.end() - 1);
    EXPECT_FALSE(decode<Stats>(shorter).has_value());
}

TEST(QueryMessages, WelcomeOfNoSwitchOrOfMoreThanFourIsRefused) {
    Welcome nowhere = two_switches;
    nowhere.path.clear();
    EXPECT_FALSE(decode<Welcome>(encoded(nowhere)).has_value());
    Welcome far = two_switches;
    far.path.resize(max_path_switches + 1);
    Bytes bytes = encoded(far);
    EXPECT_EQ(decode<Welcome>(bytes)->path.size(), max_path_switches)
        << "the encoder leaves out switches after the fourth";
    bytes[control_prefix_bytes + 12] = std::byte{max_path_switches + 1};
    EXPECT_FALSE(decode<Welcome>(bytes).has_value());
}

TEST(QueryMessages, PartPastTheLastIsRefused) {
    EXPECT_FALSE(decode<Report>(encoded(Report{.part = 1, .parts = 1, .text = {}})).has_value());
    EXPECT_FALSE(decode<Report>(encoded(Report{.part = 0, .parts = 0, .text = {}})).has_value());
}

}  // namespace
}  // namespace atp::wire
