// SPDX-License-Identifier: Apache-2.0
#include "doctor/switch_report.h"

#include <gtest/gtest.h>

#include "net/switch_snapshot.h"

namespace atp::doctor {
namespace {

TEST(SwitchReport, SumsTheShardsOfWhatASwitchWrites) {
    net::NodeSnapshot snapshot;
    snapshot.shards.resize(2);
    snapshot.shards[0].udp.received_packets = 5;
    snapshot.shards[1].udp.received_packets = 6;
    snapshot.shards[1].udp.dropped_packets = 2;
    snapshot.shards[0].udp.refused_packets = 3;
    snapshot.shards[0].tree.refused = 4;
    const auto report = read_switch_report(net::to_json(snapshot));
    ASSERT_TRUE(report);
    EXPECT_EQ(report->threads, 2U);
    EXPECT_EQ(report->received, 11U);
    EXPECT_EQ(report->dropped_by_kernel, 2U);
    EXPECT_EQ(report->refused_by_kernel, 3U);
    EXPECT_EQ(report->joins_refused, 4U);
    EXPECT_TRUE(report->parent.empty());
    EXPECT_FALSE(report->emulates_ports);
}

TEST(SwitchReport, TellsOfTheParentAndOfEmulatedPorts) {
    net::NodeSnapshot snapshot;
    snapshot.parent = net::Address::loopback(net::Family::ipv4, 4790);
    snapshot.parent_answers = true;
    snapshot.ports.in.loss = snapshot.ports.out.loss = 0.25;
    const auto report = read_switch_report(net::to_json(snapshot));
    ASSERT_TRUE(report);
    EXPECT_EQ(report->parent, "127.0.0.1:4790");
    EXPECT_TRUE(report->parent_answers);
    EXPECT_TRUE(report->emulates_ports);
    EXPECT_DOUBLE_EQ(report->emulated_loss, 0.25);
}

TEST(SwitchReport, TellsOfThePartInsideTheKernel) {
    net::NodeSnapshot snapshot;
    snapshot.shards.resize(2);
    snapshot.shards[1].aggregators = 44'444;
    snapshot.shards[1].kernel = {
        .lanes = 352, .interfaces = {{"eth1", "native"}, {"eth2", "generic"}}, .oversized = 5, .damaged = 6};
    const auto report = read_switch_report(net::to_json(snapshot));
    ASSERT_TRUE(report && report->kernel);
    EXPECT_EQ(report->threads, 1U);
    EXPECT_EQ(report->kernel->aggregators, 44'444U);
    EXPECT_EQ(report->kernel->lanes, 352U);
    EXPECT_EQ(report->kernel->oversized, 5U);
    EXPECT_EQ(report->kernel->damaged, 6U);
    ASSERT_EQ(report->kernel->interfaces.size(), 2U);
    EXPECT_EQ(report->kernel->interfaces[1].second, "generic");
}

TEST(SwitchReport, RefusesWhatIsNoReport) {
    EXPECT_FALSE(read_switch_report(R"({"shards": [{"kernel": {"interfaces": {"eth1": 3}}}]})"));
    EXPECT_FALSE(read_switch_report(R"({"shards": [{"kernel": 3}]})"));
    EXPECT_FALSE(read_switch_report(""));
    EXPECT_FALSE(read_switch_report("[1,2]"));
    EXPECT_FALSE(read_switch_report(R"({"shards": 3})"));
    EXPECT_FALSE(read_switch_report(R"({"shards": [{"udp": {"received_packets": "many"}}]})"));
    EXPECT_FALSE(read_switch_report(R"({"shards": ["text"]})"));
}

}  // namespace
}  // namespace atp::doctor
