// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/kernel_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace atp::apps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint16_t port = 4790;

switchd::SwitchNodeConfig usual_node() {
    switchd::SwitchNodeConfig node;
    node.udp.local = wire::Address::any(wire::Family::ipv4, port);
    return node;
}

// The error message; empty if the flags are valid.
std::string misuse(const std::vector<std::string>& interfaces, const switchd::SwitchNodeConfig& node,
                   const std::vector<std::string>& given = {}) {
    const auto is_given = [&](const std::string& flag) { return std::ranges::count(given, flag) != 0; };
    return find_misuse({.interfaces = interfaces}, node, is_given).value_or("");
}

TEST(InterfaceList, ListParsesToNamesWithoutBlanks) {
    EXPECT_THAT(parse_interfaces("eth1").value(), ElementsAre("eth1"));
    EXPECT_THAT(parse_interfaces(" to-w0, to-w1\t,to-w2 ").value(), ElementsAre("to-w0", "to-w1", "to-w2"));
}

TEST(InterfaceList, ListWithAnEmptyNameIsRefused) {
    for (const char* text : {"", " ", ",", "eth1,", ",eth1", "eth1, ,eth2", "eth1,,eth2"}) {
        EXPECT_FALSE(parse_interfaces(text)) << text;
    }
}

TEST(KernelFlags, UsualFlagsAreAccepted) {
    EXPECT_EQ(misuse({"eth1", "eth2"}, usual_node(), {"--xdp", "--level", "--xdp-pins", "--memory", "--listen"}), "");
    EXPECT_EQ(misuse({}, usual_node(), {"--loss", "--port-rate"}), "");
}

TEST(KernelFlags, KernelFlagsWithoutInterfacesAreRefused) {
    for (const char* flag : {"--level", "--xdp-pins"}) EXPECT_THAT(misuse({}, usual_node(), {flag}), HasSubstr(flag));
}

TEST(KernelFlags, InterfaceNamedTwiceIsRefused) {
    EXPECT_EQ(misuse({"eth2", "eth1", "eth2"}, usual_node()),
              "--xdp: interface 'eth2' is listed twice; list each interface once");
}

TEST(KernelFlags, MemoryOfZeroPortOfZeroAndSeveralThreadsAreRefused) {
    switchd::SwitchNodeConfig node = usual_node();
    node.memory_bytes = 0;
    EXPECT_THAT(misuse({"eth1"}, node), HasSubstr("--memory 0"));
    node = usual_node();
    node.udp.local = node.udp.local.with_port(0);
    EXPECT_THAT(misuse({"eth1"}, node), HasSubstr("port 0 of --listen"));
    node = usual_node();
    node.shards = 2;
    EXPECT_THAT(misuse({"eth1"}, node), HasSubstr("--threads 1"));
}

// The error message for the agent of a pipeline.
std::string pipeline_misuse(const KernelPartConfig& pipeline, const switchd::SwitchNodeConfig& node,
                            const std::vector<std::string>& given = {}) {
    const auto is_given = [&](const std::string& flag) { return std::ranges::count(given, flag) != 0; };
    return find_misuse(pipeline, node, is_given).value_or("");
}

TEST(KernelFlags, AgentOfAPipelineNeedsBothOfItsFlags) {
    const KernelPartConfig both{.pipeline = "127.0.0.1:9090", .pipeline_control = "control"};
    EXPECT_EQ(pipeline_misuse(both, usual_node(), {"--p4", "--p4-control", "--level"}), "");
    EXPECT_THAT(pipeline_misuse({.pipeline = "127.0.0.1:9090"}, usual_node()), HasSubstr("--p4-control"));
    EXPECT_THAT(pipeline_misuse({.pipeline_control = "control"}, usual_node()), HasSubstr("--p4-control"));
}

TEST(KernelFlags, AgentOfAPipelineExcludesTheKernelMemoryAndThreads) {
    const KernelPartConfig both{.pipeline = "127.0.0.1:9090", .pipeline_control = "control"};
    KernelPartConfig kernel_too = both;
    kernel_too.interfaces = {"eth1"};
    EXPECT_THAT(pipeline_misuse(kernel_too, usual_node()), HasSubstr("--p4 and --xdp"));
    EXPECT_THAT(pipeline_misuse(both, usual_node(), {"--memory"}), HasSubstr("--memory"));
    switchd::SwitchNodeConfig node = usual_node();
    node.udp.local = node.udp.local.with_port(0);
    EXPECT_THAT(pipeline_misuse(both, node), HasSubstr("port 0 of --listen"));
    node = usual_node();
    node.shards = 2;
    EXPECT_THAT(pipeline_misuse(both, node), HasSubstr("--threads 1"));
}

}  // namespace
}  // namespace atp::apps
