// SPDX-License-Identifier: Apache-2.0
#include "doctor/host_facts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace atp::doctor {
namespace {

namespace fs = std::filesystem;

// A /proc and a /sys that the test writes.
// NOLINTNEXTLINE(cppcoreguidelines-virtual-class-destructor): tests derive from it, GoogleTest destroys them
class HostFiles : public testing::Test {
  protected:
    HostFiles() {
        std::string name = (fs::temp_directory_path() / "atp-host-files-XXXXXX").string();
        root_ = mkdtemp(name.data());
    }
    ~HostFiles() override { fs::remove_all(root_); }
    void write(const std::string& path, const std::string& text) const {
        fs::create_directories((root_ / path).parent_path());
        std::ofstream(root_ / path) << text;
    }

    fs::path root_;
};

TEST_F(HostFiles, EveryFactIsRead) {
    write("proc/sys/kernel/osrelease", "6.1.0-13-amd64\n");
    write("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
    write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
    write("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n");
    write("sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "performance\n");
    write("proc/sys/net/core/rmem_max", "212992\n");
    write("proc/sys/net/core/wmem_max", "4194304\n");
    const HostFacts facts = read_host_files(root_);
    EXPECT_EQ(facts.kernel_release, "6.1.0-13-amd64");
    EXPECT_EQ(facts.clock_source, "tsc");
    EXPECT_EQ(facts.governors, (std::vector<std::string>{"performance", "powersave"}));
    EXPECT_EQ(facts.receive_buffer_limit, 212'992U);
    EXPECT_EQ(facts.send_buffer_limit, 4'194'304U);
}

TEST_F(HostFiles, MissingFilesLeaveFactsUnknown) {
    const HostFacts facts = read_host_files(root_);
    EXPECT_TRUE(facts.kernel_release.empty());
    EXPECT_TRUE(facts.governors.empty());
    EXPECT_FALSE(facts.core_limit);
    EXPECT_EQ(facts.receive_buffer_limit, 0U);
    EXPECT_EQ(facts.drops.udp_received, 0U);
}

TEST_F(HostFiles, DropsOfTheKernelAreRead) {
    write("proc/net/snmp",
          "Tcp: InSegs RetransSegs\nTcp: 1 2\n"
          "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\nUdp: 100 3 7 90 6 5\n"
          "UdpLite: InDatagrams\nUdpLite: 9\n");
    write("proc/net/softnet_stat", "0000000a 00000002 00000001\n00000010 00000001 00000000\n");
    const KernelDrops drops = read_kernel_drops(root_);
    EXPECT_EQ(drops.udp_received, 100U);
    EXPECT_EQ(drops.udp_receive_buffer_full, 6U);
    EXPECT_EQ(drops.udp_send_buffer_full, 5U);
    EXPECT_EQ(drops.backlog_processed, 26U);
    EXPECT_EQ(drops.backlog_dropped, 3U);
}

TEST_F(HostFiles, TightestCpuLimitOfTheControlGroupsIsRead) {
    write("proc/self/cgroup", "0::/jobs/training\n");
    write("sys/fs/cgroup/jobs/training/cpu.max", "max 100000\n");
    write("sys/fs/cgroup/jobs/cpu.max", "150000 100000\n");
    EXPECT_EQ(read_host_files(root_).core_limit, 1.5);
}

TEST_F(HostFiles, CpuLimitOfAContainerAtItsRootIsRead) {
    write("proc/self/cgroup", "0::/kubepods/pod7\n");
    write("sys/fs/cgroup/cpu.max", "400000 100000\n");
    EXPECT_EQ(read_host_files(root_).core_limit, 4.0);
}

TEST_F(HostFiles, CpuLimitOfControlGroupsVersion1IsRead) {
    write("proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/docker/7\n0::/\n");
    write("sys/fs/cgroup/cpu/docker/7/cpu.cfs_quota_us", "50000\n");
    write("sys/fs/cgroup/cpu/docker/7/cpu.cfs_period_us", "100000\n");
    write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(read_host_files(root_).core_limit, 0.5);
}

TEST(ThisHost, FactsAreRead) {
    const HostFacts facts = read_host();
    EXPECT_FALSE(facts.kernel_release.empty());
    EXPECT_GE(facts.cores, 1U);
    EXPECT_GT(facts.clock_reading.count(), 0);
    EXPECT_FALSE(facts.interfaces.empty());
    EXPECT_EQ(facts.socket_error, "");
    EXPECT_FALSE(facts.socket[net::Feature::receive_buffer].text.empty());
}

}  // namespace
}  // namespace atp::doctor
