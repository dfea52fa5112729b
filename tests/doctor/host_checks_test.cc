// SPDX-License-Identifier: Apache-2.0
#include "doctor/host_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace atp::doctor {
namespace {

using testing::HasSubstr;

HostFacts good_host() {
    HostFacts facts;
    facts.kernel_release = "6.1.0-13-amd64";
    facts.clock_source = "tsc";
    facts.clock_reading = std::chrono::nanoseconds(25);
    facts.governors = {"performance"};
    facts.cores = 8;
    facts.receive_buffer_limit = facts.send_buffer_limit = 16 << 20;
    facts.interfaces = {{.name = "lo", .loopback = true, .multicast = false},
                        {.name = "eth0", .loopback = false, .multicast = true}};
    for (std::size_t i = 0; i < net::feature_count; ++i) facts.socket.set(static_cast<net::Feature>(i), true, true, "");
    return facts;
}

TEST(HostChecks, GoodHostHasNoFindings) {
    for (const Finding& finding : check_host(good_host())) {
        EXPECT_EQ(finding.status, Status::ok) << finding.name << ": " << finding.found;
        EXPECT_EQ(finding.fix, "") << finding.name;
    }
}

TEST(HostChecks, OldKernelIsReportedWithItsMissingFeatures) {
    HostFacts facts = good_host();
    facts.kernel_release = "4.9.0";
    EXPECT_THAT(check_kernel(facts).found, HasSubstr("sends and receives UDP packet by packet"));
    facts.kernel_release = "4.18.0-553.el8";
    EXPECT_THAT(check_kernel(facts).found, HasSubstr(": receives UDP packet by packet"));
    facts.kernel_release = "5.10.0-28-amd64";
    EXPECT_THAT(check_kernel(facts).found, HasSubstr("whole milliseconds"));
    EXPECT_EQ(check_kernel(facts).status, Status::warn);
    facts.kernel_release = "5.11.0";
    EXPECT_EQ(check_kernel(facts).status, Status::ok);
}

TEST(HostChecks, UnreadableKernelVersionWarns) {
    HostFacts facts = good_host();
    for (const char* text : {"", "six", "6", "6.x"}) {
        facts.kernel_release = text;
        EXPECT_EQ(check_kernel(facts).status, Status::warn) << text;
    }
}

TEST(HostChecks, ClockReadFromADeviceWarns) {
    HostFacts facts = good_host();
    facts.clock_source = "hpet";
    EXPECT_EQ(check_clock(facts).status, Status::warn);
    EXPECT_THAT(check_clock(facts).fix, HasSubstr("clocksource=tsc"));
}

TEST(HostChecks, SlowClockWarns) {
    HostFacts facts = good_host();
    facts.clock_reading = std::chrono::microseconds(2);
    EXPECT_EQ(check_clock(facts).status, Status::warn);
}

TEST(HostChecks, EnergySavingGovernorWarns) {
    HostFacts facts = good_host();
    facts.governors = {"performance", "powersave"};
    EXPECT_EQ(check_frequency(facts).status, Status::warn);
    EXPECT_THAT(check_frequency(facts).fix, HasSubstr("performance"));
    facts.governors.clear();
    EXPECT_EQ(check_frequency(facts).status, Status::ok);
}

TEST(HostChecks, OneCoreOrASmallCpuLimitWarns) {
    HostFacts facts = good_host();
    facts.cores = 1;
    EXPECT_EQ(check_cores(facts).status, Status::warn);
    facts.cores = 8;
    facts.core_limit = 0.5;
    EXPECT_EQ(check_cores(facts).status, Status::warn);
    EXPECT_THAT(check_cores(facts).fix, HasSubstr("cpu.max"));
    facts.core_limit = 2.0;
    EXPECT_EQ(check_cores(facts).status, Status::ok);
}

TEST(HostChecks, MulticastOnTheLoopbackAloneWarns) {
    HostFacts facts = good_host();
    facts.interfaces = {{.name = "lo", .loopback = true, .multicast = true}, {.name = "tun0"}};
    EXPECT_EQ(check_multicast(facts).status, Status::warn);
}

TEST(HostChecks, SmallBufferLimitNamesTheSettingThatRaisesIt) {
    HostFacts facts = good_host();
    facts.receive_buffer_limit = facts.send_buffer_limit = 212'992;
    facts.socket.set(net::Feature::receive_buffer, true, false, "212992 bytes");
    facts.socket.set(net::Feature::send_buffer, true, false, "212992 bytes");
    EXPECT_EQ(check_receive_buffer(facts).status, Status::warn);
    EXPECT_THAT(check_receive_buffer(facts).found, HasSubstr("212992"));
    EXPECT_THAT(check_receive_buffer(facts).fix, HasSubstr("sysctl -w net.core.rmem_max=8388608"));
    EXPECT_THAT(check_send_buffer(facts).fix, HasSubstr("sysctl -w net.core.wmem_max=8388608"));
}

TEST(HostChecks, BufferGrantedByPrivilegeIsReported) {
    HostFacts facts = good_host();
    facts.receive_buffer_limit = 212'992;
    facts.socket.set(net::Feature::receive_buffer, true, true, "8388608 bytes");
    EXPECT_EQ(check_receive_buffer(facts).status, Status::ok);
    EXPECT_THAT(check_receive_buffer(facts).found, HasSubstr("by privilege"));
}

TEST(HostChecks, MissingFeatureWarnsWithTheReason) {
    HostFacts facts = good_host();
    for (const net::Feature feature :
         {net::Feature::mmsg, net::Feature::gso, net::Feature::gro, net::Feature::ecn, net::Feature::no_fragments}) {
        EXPECT_EQ(check_feature(facts, feature).status, Status::ok);
        facts.socket.lose(feature, "the kernel's reason");
        EXPECT_EQ(check_feature(facts, feature).status, Status::warn);
        EXPECT_THAT(check_feature(facts, feature).found, HasSubstr("the kernel's reason"));
        EXPECT_NE(check_feature(facts, feature).fix, "");
    }
}

TEST(HostChecks, HostWithoutSocketsFails) {
    HostFacts facts = good_host();
    facts.socket_error = "open 127.0.0.1:0: denied (EPERM)";
    const std::vector<Finding> findings = check_host(facts);
    EXPECT_FALSE(passed(findings));
    EXPECT_THAT(findings.back().found, HasSubstr("EPERM"));
}

TEST(KernelDropsCheck, FewOldDropsAreOk) {
    const KernelDrops drops{.udp_received = 1'000'000, .udp_receive_buffer_full = 10, .backlog_processed = 1'000'000};
    EXPECT_EQ(check_kernel_drops(drops, drops).status, Status::ok);
}

TEST(KernelDropsCheck, OneRecentDropWarns) {
    const KernelDrops before{.udp_received = 1'000'000, .udp_receive_buffer_full = 10};
    KernelDrops after = before;
    ++after.udp_receive_buffer_full;
    EXPECT_EQ(check_kernel_drops(before, after).status, Status::warn);
    EXPECT_THAT(check_kernel_drops(before, after).found, HasSubstr("1 of them during this examination"));
    EXPECT_THAT(check_kernel_drops(before, after).fix, HasSubstr("rmem_max"));
}

TEST(KernelDropsCheck, ManyDropsWarnWithTheBufferOrTheBacklog) {
    const KernelDrops buffer{.udp_received = 1000, .udp_receive_buffer_full = 10};
    EXPECT_THAT(check_kernel_drops(buffer, buffer).fix, HasSubstr("rmem_max"));
    const KernelDrops backlog{.backlog_processed = 1000, .backlog_dropped = 10};
    EXPECT_EQ(check_kernel_drops(backlog, backlog).status, Status::warn);
    EXPECT_THAT(check_kernel_drops(backlog, backlog).fix, HasSubstr("netdev_max_backlog"));
}

}  // namespace
}  // namespace atp::doctor
