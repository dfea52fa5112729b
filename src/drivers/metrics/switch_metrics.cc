// SPDX-License-Identifier: Apache-2.0
#include "metrics/switch_metrics.h"

#include <fmt/format.h>

#include <map>
#include <string_view>

#include "metrics/add_counters.h"
#include "metrics/counter_help.h"
#include "wire/job_text.h"
#include "wire/packet.h"

namespace atp::metrics {
namespace {

double number(std::uint64_t value) { return static_cast<double>(value); }

Labels with(Labels labels, std::string_view name, std::string value) {
    labels.emplace_back(name, std::move(value));
    return labels;
}

void add_gauge(std::string_view name, std::string_view help, const Labels& labels, double value, Exposition& to) {
    to.add({name, Kind::gauge, help}, labels, value);
}

void add_channel(const client::ChannelReport& channel, const Labels& of_switch, Exposition& to) {
    Labels labels = with(of_switch, "job", wire::job_to_string(channel.job));
    labels = with(labels, "channel", fmt::format("{}", channel.channel));
    add_gauge("atp_channel_ready", "1 if all members of the channel have joined, up to the server", labels,
              channel.ready ? 1 : 0, to);
    add_gauge("atp_channel_members", "Members of the channel that have joined at this switch", labels, channel.present,
              to);
    add_gauge("atp_channel_members_expected", "Members that the channel has at this switch", labels, channel.expected,
              to);
    add_gauge("atp_channel_level", "Level of this switch in the job: 0 next to workers", labels, channel.level, to);
    if (channel.slowest) {
        const client::SlowestChild& slowest = *channel.slowest;
        const Labels child = slowest.rank ? with(labels, "rank", fmt::format("{}", *slowest.rank))
                                          : with(labels, "unit", fmt::format("{}", slowest.unit));
        add_gauge("atp_channel_slowest_waited_ratio",
                  "Share of the time in which only the packets of this member, the "
                  "slowest, were missing",
                  child, slowest.waited_permille / 1000.0, to);
        add_gauge("atp_channel_slowest_share_ratio", "Share of this member, the slowest, in all such waiting", child,
                  slowest.share_percent / 100.0, to);
        add_gauge("atp_channel_slowest_last_ratio",
                  "Share of the fragments that this member, the slowest, completed as "
                  "the last one",
                  child, slowest.last_percent / 100.0, to);
    }
    if (!channel.hosts) return;
    add_gauge("atp_server_memory_bytes", "Memory reserved for the parameter server of the channel", labels,
              number(channel.server_bytes), to);
    add_counters("server", protocol::server_fields, server_help, channel.server, labels, to);
}

void add_kernel(const client::KernelReport& kernel, const Labels& labels, Exposition& to) {
    add_counters("kernel", client::kernel_fields, kernel_help, kernel, labels, to);
    add_gauge("atp_kernel_lanes", "Lanes of an aggregator in the kernel", labels, kernel.lanes, to);
    add_gauge("atp_kernel_passing_jobs",
              "Jobs forwarded unaggregated, because only a part of their packets passes here", labels,
              number(kernel.passing_jobs.size()), to);
    for (const auto& [interface, mode] : kernel.interfaces) {
        add_gauge("atp_kernel_interface_attached", "1 if the switch in the kernel runs on this interface",
                  with(with(labels, "interface", interface), "mode", mode), mode == "gone" ? 0 : 1, to);
    }
    for (const client::MarkReport& port : kernel.marks) {
        const Labels of_port = with(labels, "interface", port.interface);
        add_gauge("atp_port_rate_bytes", "Bytes a second that the link of this interface carries", of_port,
                  number(port.link_rate) / 8, to);
        to.add({"atp_port_marked_frames", Kind::counter, "Frames that left this interface with a congestion mark"},
               of_port, number(port.marked));
    }
}

void add_slices(const client::ShardReport& shard, const Labels& labels, Exposition& to) {
    for (const client::SliceReport& slice : shard.slices) {
        const Labels of_tenant = with(labels, "tenant", slice.tenant);
        add_gauge("atp_tenant_aggregators", "Aggregators of the tenant's slice", of_tenant, slice.aggregators, to);
        if (slice.held) {
            add_gauge("atp_tenant_aggregators_held", "Aggregators that the tenant's fragments hold", of_tenant,
                      *slice.held, to);
        }
    }
}

void add_shard(const client::ShardReport& shard, const Labels& labels, Exposition& to) {
    add_gauge("atp_switch_aggregators", "Aggregators of this thread", labels, shard.aggregators, to);
    add_counters("switch", protocol::switch_fields, switch_help, shard.packets, labels, to);
    for (std::size_t i = 0; i < shard.packets.refused.size(); ++i) {
        if (shard.packets.refused[i] == 0) continue;
        to.add({"atp_switch_refused", Kind::counter, "Packets that do not decode, by reason"},
               with(labels, "reason", std::string(to_string(static_cast<wire::DecodeError>(i)))),
               number(shard.packets.refused[i]));
    }
    add_counters("switch", client::shard_fields, shard_help, shard.shard, labels, to);
    add_counters("switch", control::tree_fields, tree_help, shard.tree, labels, to);
    add_counters("udp", net::udp_fields, udp_help, shard.udp, labels, to);
    for (const client::JobReport& job : shard.jobs) {
        add_counters("job", protocol::switch_fields, switch_help, job.counters,
                     with(labels, "job", wire::job_to_string(job.job)), to);
    }
    add_slices(shard, labels, to);
    if (shard.kernel) add_kernel(*shard.kernel, labels, to);
}

// What each tenant may use; what it uses follows from jobs and channels.
void add_limits(const client::SwitchReport& report, const Labels& labels, Exposition& to) {
    for (const client::TenantReport& tenant : report.tenants) {
        const Labels of_tenant = with(labels, "tenant", tenant.name);
        if (tenant.jobs) add_gauge("atp_tenant_jobs_limit", "Most jobs of the tenant", of_tenant, *tenant.jobs, to);
        if (tenant.channels) {
            add_gauge("atp_tenant_channels_limit", "Most channels of the tenant", of_tenant, *tenant.channels, to);
        }
        if (tenant.server_bytes) {
            add_gauge("atp_tenant_server_memory_limit_bytes", "Most memory of the tenant's parameter servers",
                      of_tenant, number(*tenant.server_bytes), to);
        }
    }
}

// Of each job once: who runs it.
void add_jobs(const client::SwitchReport& report, const Labels& labels, Exposition& to) {
    struct JobLabels {
        std::string name;
        std::string tenant;
    };
    std::map<std::uint32_t, JobLabels> jobs;
    for (const client::ShardReport& shard : report.shards) {
        for (const client::JobReport& job : shard.jobs) jobs.try_emplace(job.job);
        for (const client::ChannelReport& channel : shard.channels) {
            JobLabels& job = jobs[channel.job];
            if (!channel.job_name.empty()) job.name = channel.job_name;
            if (!channel.tenant.empty()) job.tenant = channel.tenant;
        }
    }
    add_gauge("atp_switch_jobs", "Jobs at this switch", labels, number(jobs.size()), to);
    for (const auto& [job, known] : jobs) {
        to.add({"atp_job", Kind::info, "A job at this switch, its name, and whose it is"},
               with(with(with(labels, "job", wire::job_to_string(job)), "name", known.name), "tenant", known.tenant),
               1);
    }
}

}  // namespace

void add_switch(const std::string& name, const std::optional<client::SwitchReport>& report, Exposition& to) {
    const Labels labels{{"switch", name}};
    add_gauge("atp_switch_up", "1 if the switch answers", labels, report ? 1 : 0, to);
    if (!report) return;
    to.add({"atp_switch", Kind::info, "Version of the switch, the number of this start, and its parent"},
           with(with(with(labels, "software", report->software), "id", fmt::format("{:016x}", report->id)), "parent",
                report->parent),
           1);
    add_gauge("atp_switch_uptime_seconds", "Time since the start of the switch", labels, report->uptime_s, to);
    add_gauge("atp_switch_memory_bytes", "Memory of all aggregators", labels, number(report->memory_bytes), to);
    add_gauge("atp_switch_lanes", "Lanes of an aggregator", labels, report->lanes, to);
    add_gauge("atp_switch_open", "1 if any host may start jobs, since the switch has no tenants", labels,
              report->is_open ? 1 : 0, to);
    add_gauge("atp_switch_draining", "1 if the switch takes no new job and ends after the last one", labels,
              report->draining ? 1 : 0, to);
    to.add({"atp_switch_hellos", Kind::counter, "HELLOs received"}, labels, number(report->hellos));
    if (!report->parent.empty()) {
        add_gauge("atp_switch_parent_up", "1 if the parent of the switch answers", labels,
                  report->parent_answers ? 1 : 0, to);
    }
    add_jobs(*report, labels, to);
    add_limits(*report, labels, to);
    for (std::size_t i = 0; i < report->shards.size(); ++i) {
        const client::ShardReport& shard = report->shards[i];
        const std::string thread = shard.kernel ? "kernel" : fmt::format("{}", i);
        add_shard(shard, with(labels, "thread", thread), to);
        for (const client::ChannelReport& channel : shard.channels) add_channel(channel, labels, to);
    }
}

}  // namespace atp::metrics
