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

std::string text_of(const std::vector<NamedRate>& rates) {
    std::string text;
    for (const NamedRate& rate : rates) text += rate.interface + "=" + std::to_string(rate.rate) + ";";
    return text;
}

TEST(LinkRates, RatesAreOfAllInterfacesOrOfOne) {
    EXPECT_EQ(text_of(parse_link_rates("10Gbit").value()), "=10000000000;");
    EXPECT_EQ(text_of(parse_link_rates("eth1=500Mbit, eth2 = 1Gbit/s,40Gbps").value()),
              "eth1=500000000;eth2=1000000000;=40000000000;");
    EXPECT_EQ(text_of(parse_link_rates("1Mbit,eth1=10000Gbit").value()), "=1000000;eth1=10000000000000;");
}

TEST(LinkRates, TextThatIsNoRateIsRefused) {
    for (const char* text : {"", "eth1", "eth1=", "=1Gbit", "eth1=1Gbit,", "0", "999kbit", "10001Gbit", "eth1=1Gbit=2"})
        EXPECT_FALSE(parse_link_rates(text)) << text;
}

TEST(LinkRates, RatesThatContradictOtherFlagsAreRefused) {
    const auto refusal = [](std::string_view rates) {
        const KernelPartConfig kernel{.interfaces = {"eth1", "eth2"}, .rates = parse_link_rates(rates).value()};
        return find_misuse(kernel, usual_node(), [](const std::string&) { return false; }).value_or("");
    };
    EXPECT_EQ(refusal("1Gbit,eth1=10Gbit"), "");
    EXPECT_THAT(refusal("eth3=1Gbit"), HasSubstr("--xdp does not list interface 'eth3'"));
    EXPECT_THAT(refusal("eth1=1Gbit,eth1=2Gbit"), HasSubstr("interface 'eth1' has two rates"));
    EXPECT_THAT(refusal("1Gbit,2Gbit"), HasSubstr("two rates are for all interfaces"));
}

TEST(KernelFlags, UsualFlagsAreAccepted) {
    EXPECT_EQ(misuse({"eth1", "eth2"}, usual_node(), {"--xdp", "--level", "--xdp-pins", "--memory", "--listen"}), "");
    EXPECT_EQ(misuse({}, usual_node(), {"--loss", "--port-rate"}), "");
}

TEST(KernelFlags, KernelFlagsWithoutInterfacesAreRefused) {
    for (const char* flag : {"--level", "--xdp-pins", "--marks"})
        EXPECT_THAT(misuse({}, usual_node(), {flag}), HasSubstr(flag));
}

TEST(KernelFlags, LinkRatesAloneMarkOnTheInterfacesThatTheyName) {
    const auto refusal = [](std::string_view rates, const std::vector<std::string>& given,
                            const std::string& pipeline = "") {
        const KernelPartConfig kernel{.rates = parse_link_rates(rates).value(),
                                      .pipeline = pipeline,
                                      .pipeline_control = pipeline.empty() ? "" : "control"};
        const auto is_given = [&](const std::string& flag) { return std::ranges::count(given, flag) != 0; };
        return find_misuse(kernel, usual_node(), is_given).value_or("");
    };
    EXPECT_EQ(refusal("eth1=1Gbit,eth2=10Gbit", {"--link-rate"}), "");
    EXPECT_THAT(refusal("eth1=1Gbit,2Gbit", {"--link-rate"}), HasSubstr("name the interfaces"));
    EXPECT_THAT(refusal("eth1=1Gbit,eth1=2Gbit", {"--link-rate"}), HasSubstr("two rates"));
    EXPECT_THAT(refusal("eth1=1Gbit", {"--link-rate", "--marks"}), HasSubstr("--marks needs --xdp"));
    EXPECT_THAT(refusal("eth1=1Gbit", {"--link-rate", "--xdp-pins"}), HasSubstr("--xdp-pins needs --xdp"));
    EXPECT_THAT(refusal("eth1=1Gbit", {"--link-rate", "--p4"}, "127.0.0.1:9090"), HasSubstr("--p4 and --link-rate"));
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
