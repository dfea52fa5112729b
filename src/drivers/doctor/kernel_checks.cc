// SPDX-License-Identifier: Apache-2.0
// Check of a switch that aggregates in the kernel.
#include <fmt/format.h>

#include <algorithm>

#include "doctor/path_checks.h"
#include "doctor/path_findings.h"
#include "protocol/decide.h"
#include "protocol/switch.h"

namespace atp::doctor {
namespace {

// Fewer fragments may show only a single incident.
constexpr std::uint64_t telling_fragments = 1000;

// Packets that this host sends over loopback do not pass the kernel's program.
void check_lanes_of_kernel(const PathFacts& facts, const client::KernelReport& kernel, Finding& finding) {
    const std::uint32_t pass = facts.stays_on_this_host ? 0 : lanes_of(facts);
    if (kernel.oversized == 0 && pass <= kernel.lanes) return;
    const bool generic =
        std::ranges::any_of(kernel.interfaces, [](const auto& each) { return each.second == "generic"; });
    add(finding,
        kernel.oversized != 0
            ? fmt::format("{} packets with more lanes were forwarded unaggregated", kernel.oversized)
            : fmt::format("the path carries packets of {} lanes, and this switch would forward them unaggregated",
                          pass),
        fmt::format(
            "start the switch that workers address with --lanes {}{}", kernel.lanes,
            generic ? ", and disable the merging of packets on its interfaces (`ip link set dev DEVICE gso_max_segs 1`)"
                    : ""));
}

// True if most fragments that the kernel switch claims lack workers: each waits there until a resend fetches it.
bool misses_workers(const protocol::SwitchCounters& packets) {
    const std::uint64_t claimed = packets.events[ATP_EVENT_CLAIMED];
    return claimed >= telling_fragments && packets.events[ATP_EVENT_COMPLETED] < claimed / 10 &&
           packets.events[ATP_EVENT_FETCHED] > claimed / 2;
}

void check_interfaces_of_kernel(const client::KernelReport& kernel, Finding& finding) {
    std::string lost;
    for (const auto& [interface, mode] : kernel.interfaces) {
        if (mode == "gone") lost += (lost.empty() ? "" : ", ") + interface;
    }
    if (lost.empty()) return;
    add(finding,
        fmt::format(
            "the program is no longer attached to {}: another process detached it, or the interface was created again",
            lost),
        "restart that switch");
}

// Counters of a job for which misses_workers() is true, or else of all jobs since the start; nullptr: it is true for
// neither.
const protocol::SwitchCounters* find_missed(const client::ShardReport& shard) {
    for (const client::JobReport& job : shard.jobs) {
        if (misses_workers(job.counters)) return &job.counters;
    }
    return misses_workers(shard.packets) ? &shard.packets : nullptr;
}

void check_coverage_of_kernel(const client::ShardReport& shard, Finding& finding) {
    const protocol::SwitchCounters* const missed = find_missed(shard);
    std::string found;
    if (!shard.kernel->passing_jobs.empty()) {
        found = fmt::format("{} jobs are forwarded unaggregated", shard.kernel->passing_jobs.size());
    } else if (missed != nullptr) {
        found = fmt::format("of {} fragments claimed there, {} were completed and {} were fetched by workers",
                            missed->events[ATP_EVENT_CLAIMED], missed->events[ATP_EVENT_COMPLETED],
                            missed->events[ATP_EVENT_FETCHED]);
    } else {
        return;
    }
    add(finding, found + ": packets of some workers do not pass its interfaces",
        "list in --xdp every port to a worker, run no worker on the switch host, and route all packets of a job "
        "through one kernel switch; if each rack has its own kernel switch, start workers with --rack");
}

}  // namespace

Finding check_kernel(const PathFacts& facts, const client::ShardReport& shard) {
    const client::KernelReport& kernel = *shard.kernel;
    Finding finding{.name = named(CheckName::in_kernel, facts), .found = ""};
    for (const auto& [interface, mode] : kernel.interfaces) {
        finding.found += fmt::format("{}{} {}", finding.found.empty() ? "" : ", ", interface, mode);
    }
    finding.found += fmt::format(", {} aggregators of {} lanes", shard.aggregators, kernel.lanes);
    check_interfaces_of_kernel(kernel, finding);
    check_coverage_of_kernel(shard, finding);
    check_lanes_of_kernel(facts, kernel, finding);
    if (kernel.damaged != 0) {
        add(finding, fmt::format("{} packets with a wrong checksum were forwarded unaggregated", kernel.damaged),
            "look for a faulty cable or network card in front of it (`ethtool -S`), or for a host that forges packets");
    }
    if (kernel.not_admitted != 0) {
        add(finding,
            fmt::format("{} JOINs found no free job or channel, and packets of their jobs were forwarded unaggregated",
                        kernel.not_admitted),
            "restart it with more --jobs, or look for a host that forges JOINs");
    }
    return finding;
}

}  // namespace atp::doctor
