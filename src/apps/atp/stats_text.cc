// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/stats_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "base/units.h"
#include "protocol/decide.h"
#include "protocol/switch.h"
#include "wire/job_text.h"

namespace atp::apps {
namespace {

bool is_pipeline(const client::KernelReport& kernel) {
    return !kernel.interfaces.empty() && kernel.interfaces.front().second == "p4";
}

std::string kernels_text(const client::SwitchReport& report) {
    std::string text;
    for (const client::ShardReport& shard : report.shards) {
        if (!shard.kernel) continue;
        std::string interfaces;
        for (const auto& [name, mode] : shard.kernel->interfaces) {
            interfaces += fmt::format("{}{} {}", interfaces.empty() ? "" : ", ", name, mode);
        }
        text += fmt::format(
            "\ninside the kernel: {}; {} aggregators of {} lanes; forwarded unaggregated: {} oversized and {} damaged "
            "packets; {} JOINs not admitted; {} jobs forwarded unaggregated{}\n",
            interfaces, shard.aggregators, shard.kernel->lanes, shard.kernel->oversized, shard.kernel->damaged,
            shard.kernel->not_admitted, shard.kernel->passing_jobs.size(),
            report.tenants.empty() || !is_pipeline(*shard.kernel) ? "" : "; no slices: tenants share all aggregators");
    }
    return text;
}

std::string marks_text(const client::SwitchReport& report) {
    std::string text;
    for (const client::ShardReport& shard : report.shards) {
        if (!shard.kernel) continue;
        for (const client::MarkReport& port : shard.kernel->marks) {
            text += fmt::format("{}{} {} (link of {} Mbit)", text.empty() ? "frames marked: " : ", ", port.interface,
                                port.marked, port.link_rate / 1'000'000);
        }
    }
    return text.empty() ? text : text + "\n";
}

std::string slowest_text(const std::optional<client::SlowestChild>& slowest) {
    if (!slowest) return {};
    return fmt::format("; waits {:.1f} % of the time for {} ({} % of all waiting; last in {} % of the fragments)",
                       slowest->waited_permille / 10.0,
                       slowest->rank ? fmt::format("rank {}", *slowest->rank) : fmt::format("unit {}", slowest->unit),
                       slowest->share_percent, slowest->last_percent);
}

struct TenantUse {
    std::set<std::uint32_t> jobs{};
    std::uint64_t channels = 0;
    std::uint64_t server_bytes = 0;
    std::uint64_t aggregators = 0;
    std::uint64_t held = 0;
    bool is_held_known = true;
};

// Of each tenant what it uses, and its limits.
std::string uses_text(const client::SwitchReport& report) {
    if (report.tenants.empty()) return {};
    std::map<std::string, TenantUse> uses;
    for (const client::ShardReport& shard : report.shards) {
        for (const client::ChannelReport& channel : shard.channels) {
            TenantUse& use = uses[channel.tenant];
            use.jobs.insert(channel.job);
            ++use.channels;
            use.server_bytes += channel.server_bytes;
        }
    }
    for (const client::ShardReport& shard : report.shards) {
        for (const client::SliceReport& slice : shard.slices) {
            uses[slice.tenant].aggregators += slice.aggregators;
            uses[slice.tenant].held += slice.held.value_or(0);
            uses[slice.tenant].is_held_known &= slice.held.has_value();
        }
    }
    const auto of_limit = [](std::uint64_t used, bool has_limit, std::uint64_t limit) {
        return has_limit ? fmt::format("{} of {}", used, limit) : fmt::format("{}", used);
    };
    std::string text =
        fmt::format("\n{:<20} {:>14} {:>14} {:>18} {:>18}\n", "tenant", "jobs", "channels", "server MB", "aggregators");
    for (const client::TenantReport& tenant : report.tenants) {
        const TenantUse& use = uses[tenant.name];
        text += fmt::format(
            "{:<20} {:>14} {:>14} {:>18} {:>18}\n", tenant.name,
            of_limit(use.jobs.size(), tenant.jobs.has_value(), tenant.jobs.value_or(0)),
            of_limit(use.channels, tenant.channels.has_value(), tenant.channels.value_or(0)),
            of_limit(megabytes(use.server_bytes), tenant.server_bytes.has_value(),
                     megabytes(tenant.server_bytes.value_or(0))),
            use.is_held_known ? of_limit(use.held, true, use.aggregators) : fmt::format("of {}", use.aggregators));
    }
    return text;
}

std::string jobs_text(const client::SwitchReport& report) {
    std::string text =
        fmt::format("\n{:>10} {:>10} {:>10} {:>10} {:>10} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "job", "claimed", "added",
                    "completed", "collisions", "resends", "flushes", "ecn", "overflow", "forged");
    for (const client::ShardReport& shard : report.shards) {
        for (const client::JobReport& job : shard.jobs) {
            const auto& events = job.counters.events;
            text += fmt::format("{:>10} {:>10} {:>10} {:>10} {:>10} {:>8} {:>8} {:>8} {:>8} {:>8}\n",
                                wire::job_to_string(job.job), events[ATP_EVENT_CLAIMED], events[ATP_EVENT_ADDED],
                                events[ATP_EVENT_COMPLETED], events[ATP_EVENT_COLLIDED],
                                events[ATP_EVENT_RESENT] + events[ATP_EVENT_FETCHED], events[ATP_EVENT_FLUSHED],
                                job.counters.ecn, job.counters.overflows, job.counters.forged);
        }
    }
    for (const client::ShardReport& shard : report.shards) {
        for (const client::ChannelReport& channel : shard.channels) {
            text += fmt::format("  job {}{} channel {}{}: level {}, {} of {} joined{}{}, results by {}{}\n",
                                wire::job_to_string(channel.job),
                                channel.job_name.empty() ? "" : " (" + channel.job_name + ")", channel.channel,
                                channel.tenant.empty() ? "" : " of tenant " + channel.tenant, channel.level,
                                channel.present, channel.expected, channel.ready ? "" : ", waiting",
                                channel.hosts ? ", server here" : "", channel.by_group ? "multicast" : "unicast",
                                slowest_text(channel.slowest));
        }
    }
    return text;
}

std::string totals_text(const StatsTotals& now, const StatsTotals& before, double seconds) {
    std::string text;
    for (const auto& [name, count] : now) {
        if (count == 0) continue;
        text += fmt::format("  {:<20} {:>16}", name, count);
        if (const auto earlier = before.find(name); earlier != before.end() && seconds > 0) {
            text +=
                fmt::format(" {:>14.0f}/s", static_cast<double>(count - std::min(count, earlier->second)) / seconds);
        }
        text += "\n";
    }
    return text;
}

}  // namespace

StatsTotals totals_of(const client::SwitchReport& report) {
    StatsTotals totals;
    for (const client::ShardReport& shard : report.shards) {
        for (const auto& field : protocol::switch_fields) {
            totals[std::string(field.name)] += field.value_of(shard.packets);
        }
        const auto& refused = shard.packets.refused;
        totals["refused"] += std::accumulate(refused.begin(), refused.end(), std::uint64_t{0});
        totals["dropped_by_kernel"] += shard.udp.dropped_packets;
        totals["received"] += shard.udp.received_packets;
        totals["sent"] += shard.udp.sent_packets;
        totals["received_bytes"] += shard.udp.received_bytes;
        totals["sent_bytes"] += shard.udp.sent_bytes;
        totals["unrouted"] += shard.shard.unrouted;
    }
    return totals;
}

std::string stats_text(const client::SwitchReport& report, const StatsTotals& before, double seconds) {
    std::string text =
        fmt::format("{} at {}, up {:.0f} s, {:.1f} MB of aggregators of {} lanes",
                    report.software.empty() ? "?" : report.software, report.address.empty() ? "?" : report.address,
                    report.uptime_s, static_cast<double>(report.memory_bytes) / 1e6, report.lanes);
    if (!report.parent.empty()) {
        text += fmt::format(", parent {}{}", report.parent, report.parent_answers ? "" : " (does not answer)");
    }
    if (report.is_open) text += ", open: no tenants";
    text += "\n";
    return text + totals_text(totals_of(report), before, seconds) + kernels_text(report) + marks_text(report) +
           uses_text(report) + jobs_text(report);
}

}  // namespace atp::apps
