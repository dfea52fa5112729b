// SPDX-License-Identifier: Apache-2.0
#include "client/switch_report.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "sample_report.h"
#include "switchd/report.h"

namespace atp::client {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

// Without what a switch writes of experiments.
std::string product_keys(const std::string& text) {
    Json json = Json::parse(text);
    json.erase("pool_bytes");
    for (Json& shard : json["shards"]) shard.erase("switchml"), shard.erase("unheld");
    return json.dump() + "\n";
}

// Programs read these keys. If the format changes, operators have to know: CHANGELOG.md.
TEST(SwitchReport, IsWrittenAsTheFileHasIt) {
    EXPECT_EQ(product_keys(to_json(sample_report())), text_of(ATP_SOURCE_DIR "/tests/client/switch_report.json"));
}

TEST(SwitchReport, SumsTheShardsOfWhatASwitchWrites) {
    switchd::NodeSnapshot snapshot;
    snapshot.shards.resize(2);
    snapshot.shards[0].udp.received_packets = 5;
    snapshot.shards[1].udp.received_packets = 6;
    snapshot.shards[1].udp.dropped_packets = 2;
    snapshot.shards[0].udp.refused_packets = 3;
    snapshot.shards[0].tree.refused = 4;
    const auto report = read_switch_report(switchd::to_json(snapshot));
    ASSERT_TRUE(report);
    EXPECT_EQ(report->threads, 2U);
    EXPECT_EQ(report->received, 11U);
    EXPECT_EQ(report->dropped_by_kernel, 2U);
    EXPECT_EQ(report->refused_by_kernel, 3U);
    EXPECT_EQ(report->joins_refused, 4U);
    EXPECT_TRUE(report->parent.empty());
    EXPECT_FALSE(report->emulates_ports);
}

TEST(SwitchReport, ParentAndEmulatedPortsAreRead) {
    switchd::NodeSnapshot snapshot;
    snapshot.parent = wire::Address::loopback(wire::Family::ipv4, 4790);
    snapshot.parent_answers = true;
    snapshot.parts = R"({"emulated_ports":{"loss":0.25}})";
    const auto report = read_switch_report(switchd::to_json(snapshot));
    ASSERT_TRUE(report);
    EXPECT_EQ(report->parent, "127.0.0.1:4790");
    EXPECT_TRUE(report->parent_answers);
    EXPECT_TRUE(report->emulates_ports);
    EXPECT_DOUBLE_EQ(report->emulated_loss, 0.25);
}

TEST(SwitchReport, KernelPartIsRead) {
    switchd::NodeSnapshot snapshot;
    snapshot.shards.resize(2);
    snapshot.shards[1].aggregators = 44'444;
    snapshot.shards[1].kernel = {.lanes = 352,
                                 .interfaces = {{"eth1", "native"}, {"eth2", "generic"}},
                                 .passing_jobs = {8, 9},
                                 .oversized = 5,
                                 .damaged = 6,
                                 .not_admitted = 7};
    snapshot.shards[1].packets.events[ATP_EVENT_CLAIMED] = 30;
    snapshot.shards[1].jobs = {{.job = 8, .counters = {}}};
    snapshot.shards[1].jobs[0].counters.events[ATP_EVENT_CLAIMED] = 20;
    snapshot.shards[1].jobs[0].counters.events[ATP_EVENT_COMPLETED] = 19;
    snapshot.shards[1].jobs[0].counters.events[ATP_EVENT_FETCHED] = 18;
    const auto report = read_switch_report(switchd::to_json(snapshot));
    ASSERT_TRUE(report && report->kernel);
    EXPECT_EQ(report->threads, 1U);
    EXPECT_EQ(report->kernel->aggregators, 44'444U);
    EXPECT_EQ(report->kernel->lanes, 352U);
    EXPECT_EQ(report->kernel->oversized, 5U);
    EXPECT_EQ(report->kernel->damaged, 6U);
    EXPECT_EQ(report->kernel->not_admitted, 7U);
    EXPECT_EQ(report->kernel->passing_jobs, 2U);
    ASSERT_EQ(report->kernel->fragments.size(), 2U);
    EXPECT_EQ(report->kernel->fragments[0].claimed, 20U);
    EXPECT_EQ(report->kernel->fragments[0].completed, 19U);
    EXPECT_EQ(report->kernel->fragments[0].fetched, 18U);
    EXPECT_EQ(report->kernel->fragments[1].claimed, 30U);
    ASSERT_EQ(report->kernel->interfaces.size(), 2U);
    EXPECT_EQ(report->kernel->interfaces[1].second, "generic");
}

TEST(SwitchReport, MemoryIncludesAggregatorsInTheKernel) {
    switchd::NodeSnapshot snapshot;
    snapshot.memory_bytes = 1000;
    snapshot.shards.resize(2);
    snapshot.shards[0].aggregators = 7;  // in user space: part of memory_bytes
    snapshot.shards[1].aggregators = 44'444;
    snapshot.shards[1].kernel = {.lanes = 352, .interfaces = {}};
    EXPECT_NE(switchd::to_json(snapshot).find(R"("memory_bytes":64000360,)"), std::string::npos)
        << switchd::to_json(snapshot);
}

TEST(SwitchReport, MalformedReportIsRefused) {
    EXPECT_FALSE(read_switch_report(R"({"shards": [{"kernel": {"interfaces": {"eth1": 3}}}]})"));
    EXPECT_FALSE(read_switch_report(R"({"shards": [{"kernel": 3}]})"));
    EXPECT_FALSE(read_switch_report(R"({"shards": [{"kernel": {}, "packets": {"claimed": "many"}}]})"));
    EXPECT_FALSE(read_switch_report(R"({"shards": [{"kernel": {}, "jobs": [3]}]})"));
    EXPECT_FALSE(read_switch_report(""));
    EXPECT_FALSE(read_switch_report("[1,2]"));
    EXPECT_FALSE(read_switch_report(R"({"shards": 3})"));
    EXPECT_FALSE(read_switch_report(R"({"shards": [{"udp": {"received_packets": "many"}}]})"));
    EXPECT_FALSE(read_switch_report(R"({"shards": ["text"]})"));
}

}  // namespace
}  // namespace atp::client
