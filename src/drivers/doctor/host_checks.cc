// SPDX-License-Identifier: Apache-2.0
#include "doctor/host_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include "doctor/check_table.h"

namespace atp::doctor {
namespace {

using Version = std::pair<unsigned, unsigned>;  // major, minor

constexpr Version has_gso{4, 18};
constexpr Version has_gro{5, 0};
constexpr Version has_fine_waits{5, 11};  // epoll_pwait2

std::optional<Version> version_of(std::string_view release) {
    Version version;
    const char* const end = release.data() + release.size();
    const auto major = std::from_chars(release.data(), end, version.first);
    if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') return std::nullopt;
    if (std::from_chars(major.ptr + 1, end, version.second).ec != std::errc()) return std::nullopt;
    return version;
}

// Reading any other clock asks a device or the hypervisor, which takes 1 us instead of 30 ns.
constexpr std::array<std::string_view, 5> quick_clocks{"tsc", "arch_sys_counter", "kvm-clock", "timebase",
                                                       "hyperv_clocksource_tsc_page"};
constexpr Duration slow_reading = std::chrono::nanoseconds(500);

// A larger share of all packets since the kernel started shows more than one old incident.
constexpr double notable_share = 1e-4;

std::string_view use_of(net::Feature feature) {
    switch (feature) {
        case net::Feature::mmsg: return "each packet costs one system call";
        case net::Feature::gso: return "the network stack processes each sent packet separately";
        case net::Feature::gro: return "the network stack processes each received packet separately";
        case net::Feature::ecn: return "congestion causes packet loss instead of ECN marks";
        case net::Feature::no_fragments: return "IP may fragment packets, and the path MTU cannot be measured";
        default: return "";
    }
}

CheckName check_of(net::Feature feature) {
    switch (feature) {
        case net::Feature::mmsg: return CheckName::mmsg;
        case net::Feature::gso: return CheckName::gso;
        case net::Feature::gro: return CheckName::gro;
        case net::Feature::ecn: return CheckName::ecn;
        default: return CheckName::no_fragments;
    }
}

std::string_view cure_of(net::Feature feature) {
    switch (feature) {
        case net::Feature::mmsg: return "allow sendmmsg and recvmmsg in the sandbox or seccomp profile";
        case net::Feature::gso: return "run Linux 4.18 or newer; check tx-udp-segmentation with `ethtool -k`";
        case net::Feature::gro: return "run Linux 5.0 or newer";
        default: return "run a newer kernel, outside a sandbox that filters socket options";
    }
}

struct BufferKind {
    CheckName check;
    net::Feature feature;
    std::string_view sysctl;
};

Finding check_buffer(const HostFacts& facts, const BufferKind& kind, std::uint64_t limit) {
    const net::FeatureState& state = facts.socket[kind.feature];
    Finding finding{.name = name_of(kind.check), .found = state.text};
    const std::string cure =
        fmt::format("run `sysctl -w {0}={1}`, and add the line {0}={1} to /etc/sysctl.d/90-atp.conf", kind.sysctl,
                    requested_buffer_bytes);
    if (!state.in_use) {
        finding.status = Status::warn;
        finding.found = fmt::format("{} bytes are allowed, {} are required: bursts are dropped or delayed", limit,
                                    requested_buffer_bytes);
        finding.fix = cure;
    } else if (limit != 0 && limit < requested_buffer_bytes) {
        finding.found += fmt::format(" by privilege; {} grants {} to unprivileged processes", kind.sysctl, limit);
    }
    return finding;
}

}  // namespace

Finding check_kernel(const HostFacts& facts) {
    Finding finding{.name = name_of(CheckName::kernel), .found = "Linux " + facts.kernel_release};
    const auto version = version_of(facts.kernel_release);
    if (!version) {
        finding.found = fmt::format("the release '{}' cannot be parsed", facts.kernel_release);
        finding.status = Status::warn;
        return finding;
    }
    if (*version >= has_fine_waits) return finding;
    finding.status = Status::warn;
    finding.found += *version < has_gso   ? ": sends and receives UDP packet by packet"
                     : *version < has_gro ? ": receives UDP packet by packet"
                                          : ": waits in whole milliseconds";
    finding.fix = "run Linux 5.11 or newer (UDP GSO since 4.18, UDP GRO since 5.0, epoll_pwait2 since 5.11)";
    return finding;
}

Finding check_clock(const HostFacts& facts) {
    const auto cost = std::chrono::duration_cast<std::chrono::nanoseconds>(facts.clock_reading).count();
    Finding finding{.name = name_of(CheckName::clock),
                    .found = fmt::format("{}, {} ns per reading",
                                         facts.clock_source.empty() ? "unknown source" : facts.clock_source, cost)};
    const bool known =
        facts.clock_source.empty() || std::ranges::find(quick_clocks, facts.clock_source) != quick_clocks.end();
    if (known && facts.clock_reading <= slow_reading) return finding;
    finding.status = Status::warn;
    finding.found += ": slow, and every batch of packets reads it";
    finding.fix =
        "select a source of /sys/devices/system/clocksource/clocksource0/available_clocksource; boot with "
        "clocksource=tsc if the processor's TSC is stable";
    return finding;
}

Finding check_frequency(const HostFacts& facts) {
    if (facts.governors.empty()) {
        return {.name = name_of(CheckName::frequency),
                .found = "no governor on this host (firmware or a hypervisor controls it)"};
    }
    Finding finding{.name = name_of(CheckName::frequency),
                    .found = fmt::format("governor {}", fmt::join(facts.governors, ", "))};
    if (facts.governors == std::vector<std::string>{"performance"}) return finding;
    finding.status = Status::warn;
    finding.found += ": idle cores may be slow when packets arrive";
    finding.fix = "run `cpupower frequency-set -g performance`";
    return finding;
}

Finding check_cores(const HostFacts& facts) {
    const double limit = facts.core_limit.value_or(static_cast<double>(facts.cores));
    Finding finding{.name = name_of(CheckName::cores), .found = fmt::format("{} usable", facts.cores)};
    if (facts.core_limit)
        finding.found += fmt::format(", limited to the time of {:.2f} (control group)", *facts.core_limit);
    if (limit >= 2 && facts.cores >= 2) return finding;
    finding.status = Status::warn;
    finding.found += ": packets wait while the job computes";
    finding.fix = facts.cores < 2 ? "give the process at least 2 cores (affinity, cpuset, size of the host)"
                                  : "raise cpu.max of the control group to at least 2 cores";
    return finding;
}

Finding check_multicast(const HostFacts& facts) {
    std::vector<std::string> able;
    for (const Interface& interface : facts.interfaces) {
        if (interface.multicast && !interface.loopback) able.push_back(interface.name);
    }
    if (!able.empty())
        return {.name = name_of(CheckName::multicast), .found = fmt::format("on {}", fmt::join(able, ", "))};
    return {.status = Status::warn,
            .name = name_of(CheckName::multicast),
            .found = "only the loopback interface carries it; `atp switch` needs it only for results by multicast",
            .fix = "to receive results by multicast, run `ip link set dev DEVICE multicast on`"};
}

Finding check_receive_buffer(const HostFacts& facts) {
    return check_buffer(facts, {CheckName::receive_buffer, net::Feature::receive_buffer, "net.core.rmem_max"},
                        facts.receive_buffer_limit);
}

Finding check_send_buffer(const HostFacts& facts) {
    return check_buffer(facts, {CheckName::send_buffer, net::Feature::send_buffer, "net.core.wmem_max"},
                        facts.send_buffer_limit);
}

Finding check_feature(const HostFacts& facts, net::Feature feature) {
    const net::FeatureState& state = facts.socket[feature];
    Finding finding{.name = name_of(check_of(feature)),
                    .found = state.text.empty() ? "in use" : "in use: " + state.text};
    if (state.in_use) return finding;
    finding.status = Status::warn;
    finding.found = fmt::format("not in use ({}): {}", state.text, use_of(feature));
    finding.fix = cure_of(feature);
    return finding;
}

Finding check_kernel_drops(const KernelDrops& before, const KernelDrops& after) {
    const std::uint64_t full = after.udp_receive_buffer_full;
    const std::uint64_t full_now = full - before.udp_receive_buffer_full;
    const std::uint64_t backlog_now = after.backlog_dropped - before.backlog_dropped;
    Finding finding{
        .name = name_of(CheckName::kernel_drops),
        .found = fmt::format("since boot: {} of {} datagrams (receive buffer full), {} datagrams (send buffer full), "
                             "{} packets (device backlog full)",
                             full, after.udp_received + full, after.udp_send_buffer_full, after.backlog_dropped)};
    const auto notable = [](std::uint64_t lost, std::uint64_t passed) {
        return static_cast<double>(lost) > notable_share * static_cast<double>(lost + passed);
    };
    const bool buffers = full_now != 0 || notable(full, after.udp_received);
    const bool backlog = backlog_now != 0 || notable(after.backlog_dropped, after.backlog_processed);
    if (!buffers && !backlog) return finding;
    finding.status = Status::warn;
    if (full_now + backlog_now != 0)
        finding.found += fmt::format("; {} of them during this examination", full_now + backlog_now);
    if (buffers) finding.fix = "raise net.core.rmem_max, and give each receiving process its own core";
    if (backlog) {
        finding.fix += finding.fix.empty() ? "" : "; ";
        finding.fix += "raise net.core.netdev_max_backlog, and spread the interrupts of the device over several cores";
    }
    return finding;
}

std::vector<Finding> check_host(const HostFacts& facts) {
    std::vector<Finding> findings{check_kernel(facts), check_clock(facts), check_frequency(facts), check_cores(facts),
                                  check_multicast(facts)};
    if (!facts.socket_error.empty()) {
        findings.push_back({.status = Status::fail,
                            .name = name_of(CheckName::socket),
                            .found = "a UDP socket cannot be opened: " + facts.socket_error,
                            .fix = "allow UDP sockets in the container or sandbox"});
        return findings;
    }
    findings.push_back(check_receive_buffer(facts));
    findings.push_back(check_send_buffer(facts));
    for (const net::Feature feature :
         {net::Feature::mmsg, net::Feature::gso, net::Feature::gro, net::Feature::ecn, net::Feature::no_fragments}) {
        findings.push_back(check_feature(facts, feature));
    }
    return findings;
}

}  // namespace atp::doctor
