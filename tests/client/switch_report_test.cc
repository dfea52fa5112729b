// SPDX-License-Identifier: Apache-2.0
#include "client/switch_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "sample_report.h"
#include "switchd/node.h"

namespace atp::client {
namespace {

using Json = nlohmann::ordered_json;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

std::string text_of(const std::string& path) {
    std::ifstream file(ATP_SOURCE_DIR + path);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string committed_report() { return text_of("/tests/client/switch_report.json"); }

// Programs read these keys.
TEST(SwitchReport, IsWrittenAsInTheCommittedFile) { EXPECT_EQ(to_json(sample_report()) + "\n", committed_report()); }

TEST(SwitchReport, IsUnchangedAfterReadingAndWriting) {
    const auto report = read_switch_report(committed_report());
    ASSERT_TRUE(report);
    EXPECT_EQ(to_json(*report) + "\n", committed_report());
}

TEST(SwitchReport, ReadsEachKindOfValue) {
    const auto report = read_switch_report(committed_report());
    ASSERT_TRUE(report && report->shards.size() == 2);
    EXPECT_EQ(report->id, 0xABCDEFU);
    EXPECT_EQ(report->uptime_s, 12.5);
    EXPECT_TRUE(report->parent_answers);
    const ShardReport& shard = report->shards[0];
    EXPECT_EQ(shard.packets.refused, sample_thread().packets.refused);
    EXPECT_EQ(shard.jobs.at(0).counters.events, sample_thread().jobs[0].counters.events);
    EXPECT_EQ(shard.features[net::Feature::gso].text, "EIO");
    EXPECT_TRUE(shard.channels.at(0).by_group && shard.channels.at(0).hosts);
    EXPECT_FALSE(shard.channels.at(1).by_group || shard.channels.at(1).hosts);
    ASSERT_TRUE(shard.channels[0].slowest && shard.channels[1].slowest);
    EXPECT_EQ(shard.channels[0].slowest->rank, 3);
    EXPECT_EQ(shard.channels[0].slowest->waited_permille, 412);
    EXPECT_EQ(shard.channels[1].slowest->rank, std::nullopt);
    EXPECT_EQ(shard.channels[1].slowest->unit, 2);
    EXPECT_FALSE(shard.kernel);
    const ShardReport* kernel = kernel_of(*report);
    ASSERT_EQ(kernel, &report->shards[1]);
    EXPECT_THAT(kernel->kernel->passing_jobs, ElementsAre(8U, 9U));
    EXPECT_EQ(kernel->kernel->interfaces.at(1).second, "generic");
    EXPECT_THAT(report->parts, IsEmpty());
}

TEST(SwitchReport, AMissingKeyLeavesTheDefault) {
    const auto report = read_switch_report(R"({"shards": [{}, {"kernel": {}}]})");
    ASSERT_TRUE(report);
    EXPECT_EQ(report->parent, "");
    EXPECT_EQ(report->shards.at(0).udp.received_packets, 0U);
    EXPECT_TRUE(report->shards.at(1).kernel);
    EXPECT_FALSE(emulated_loss(*report));
}

TEST(SwitchReport, KeepsUnknownKeysOfSwitchAndThreadAsParts) {
    const std::string text = R"({"emulated_ports":{"loss":0.25},"shards":[{"later":[1,{"a":2}]}],"slots":3})";
    const auto report = read_switch_report(text);
    ASSERT_TRUE(report);
    EXPECT_THAT(report->parts, ElementsAre(Field(&ReportPart::name, "emulated_ports"), Field(&ReportPart::json, "3")));
    EXPECT_THAT(report->shards.at(0).parts, ElementsAre(Field(&ReportPart::json, R"([1,{"a":2}])")));
    EXPECT_EQ(emulated_loss(*report), 0.25);
    const Json written = Json::parse(to_json(*report));
    EXPECT_EQ(written["emulated_ports"]["loss"], 0.25);
    EXPECT_EQ(written["slots"], 3);
    EXPECT_EQ(written["shards"][0]["later"][1]["a"], 2);
}

TEST(SwitchReport, AddsEachKeyOfAnObjectAsAPart) {
    ShardReport shard;
    add_parts("", shard.parts);
    add_parts(R"({"pool":{"slots":4},"unheld":3})", shard.parts);
    SwitchReport report;
    report.shards = {shard};
    const Json written = Json::parse(to_json(report))["shards"][0];
    EXPECT_EQ(written["pool"]["slots"], 4);
    EXPECT_EQ(written["unheld"], 3);
}

TEST(SwitchReport, RejectsTextThatIsNoReport) {
    EXPECT_FALSE(read_switch_report(R"({"shards": [{"kernel": {"interfaces": {"eth1": 3}}}]})"));
    EXPECT_FALSE(read_switch_report(R"({"shards": [{"kernel": 3}]})"));
    EXPECT_FALSE(read_switch_report(R"({"shards": [{"kernel": {}, "packets": {"claimed": "many"}}]})"));
    EXPECT_FALSE(read_switch_report(R"({"shards": [{"kernel": {}, "jobs": [3]}]})"));
    EXPECT_FALSE(read_switch_report(""));
    EXPECT_FALSE(read_switch_report("[1,2]"));
    EXPECT_FALSE(read_switch_report("{}"));
    EXPECT_FALSE(read_switch_report(R"({"shards": 3})"));
    EXPECT_FALSE(read_switch_report(R"({"shards": [{"udp": {"received_packets": "many"}}]})"));
    EXPECT_FALSE(read_switch_report(R"({"shards": ["text"]})"));
}

TEST(SwitchReport, RejectsNumbersOutOfRange) {
    EXPECT_TRUE(read_switch_report(R"({"lanes": 65535, "id": "ffffffffffffffff", "shards": []})"));
    EXPECT_FALSE(read_switch_report(R"({"lanes": 65536, "shards": []})"));
    EXPECT_FALSE(read_switch_report(R"({"lanes": -1, "shards": []})"));
    EXPECT_FALSE(read_switch_report(R"({"lanes": 0.5, "shards": []})"));
    EXPECT_FALSE(read_switch_report(R"({"id": "10000000000000000", "shards": []})"));
    EXPECT_FALSE(read_switch_report(R"({"id": "12 ", "shards": []})"));
    const auto of_job = [](const std::string& job) {
        return read_switch_report(R"({"shards": [{"jobs": [{"job": )" + job + R"(}]}]})").has_value();
    };
    EXPECT_TRUE(of_job(R"("650de528")"));
    for (const char* job : {"7", R"("650de52")", R"("650de5289")", R"("650de52g")"}) EXPECT_FALSE(of_job(job)) << job;
}

TEST(SwitchReport, RejectsTextThatIsNestedDeeperThanAnyReport) {
    const auto nested = [](std::size_t depth) {
        return R"({"shards": [], "later": )" + std::string(depth, '[') + std::string(depth, ']') + "}";
    };
    EXPECT_TRUE(read_switch_report(nested(16)));
    EXPECT_FALSE(read_switch_report(nested(1'000'000)));
}

TEST(SwitchReport, TextsHaveNoControlCharacters) {
    const std::string text =
        R"({"software":"a\u001b]52;c;\u0007\u0085","shards":[{"features":{"gso":"\u001b[2J"}}],"later":["\u009b1m\u007f"]})";
    const auto report = read_switch_report(text);
    ASSERT_TRUE(report);
    EXPECT_EQ(report->software, "a?]52;c;???");
    EXPECT_EQ(report->shards.at(0).features[net::Feature::gso].text, "?[2J");
    EXPECT_THAT(report->parts, ElementsAre(Field(&ReportPart::json, R"(["??1m?"])")));
    EXPECT_EQ(printable_report(text),
              R"({"software":"a?]52;c;???","shards":[{"features":{"gso":"?[2J"}}],"later":["??1m?"]})");
    EXPECT_FALSE(printable_report(R"({"\u001b":0})")) << "no report has such a key";
    EXPECT_FALSE(printable_report("\x1b]0;\a"));
    EXPECT_EQ(printable_report(R"({"a":"ä"})"), R"({"a":"\u00e4"})") << "ASCII can be cut anywhere";
}

TEST(SwitchReport, MemoryIncludesTheKernelSwitch) {
    switchd::SwitchNodeConfig config;
    config.udp.local = wire::Address::loopback(wire::Family::ipv4, 0);
    config.memory_bytes = 1'000'000;
    const auto node = switchd::SwitchNode::start(
        config, [] {}, sample_kernel);
    ASSERT_TRUE(node);
    const auto report = read_switch_report(to_json((*node)->snapshot()));
    ASSERT_TRUE(report && kernel_of(*report) != nullptr);
    EXPECT_EQ(report->memory_bytes, 1'000'000U + 44'444U * 1448U);
}

}  // namespace
}  // namespace atp::client
