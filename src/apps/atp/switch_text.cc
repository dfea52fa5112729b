// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/switch_text.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "apps/atp/switch_log.h"
#include "base/text.h"

namespace atp::apps {
namespace {

std::string memory_text(const switchd::SwitchNodeConfig& config) {
    if (config.kernel_aggregators != 0) return {};
    const std::string threads =
        config.shards == 1 ? "on one thread" : fmt::format("on each of {} threads", config.shards);
    return fmt::format("  aggregators  {} of {} lanes {} ({:.1f} MB)\n", switchd::aggregators_of_shard(config),
                       config.lanes, threads, static_cast<double>(config.memory_bytes) / 1e6);
}

std::string marks_text(const std::vector<client::MarkReport>& marks) {
    std::string text;
    for (const client::MarkReport& port : marks) {
        text += fmt::format("  marks        {} above 0.98 of {} Mbit/s\n", port.interface, port.link_rate / 1'000'000);
    }
    return text;
}

// Nothing about a pipeline, whose program marks or not.
std::string marks_text(const KernelPartConfig& config, const client::KernelReport& kernel) {
    if (!config.pipeline.empty() || !config.sets_marks()) return {};
    std::vector<std::string> without;
    for (const auto& [interface, mode] : kernel.interfaces) without.push_back(interface);
    for (const client::MarkReport& port : kernel.marks) std::erase(without, port.interface);
    std::string text = marks_text(kernel.marks);
    if (without.empty()) return text;
    return text + fmt::format("  without marks at {}: no driver reports a rate; set --link-rate\n", list_some(without));
}

std::string kernel_text(const client::ShardReport& shard, bool in_pipeline) {
    std::string text = fmt::format("  aggregators  {} of {} lanes inside the {} ({:.1f} MB), {}\n", shard.aggregators,
                                   shard.kernel->lanes, in_pipeline ? "pipeline" : "kernel",
                                   static_cast<double>(client::memory_of_kernel(shard)) / 1e6,
                                   shard.kernel->level == 0 ? "in a rack" : "above the racks");
    for (const auto& [interface, mode] : shard.kernel->interfaces) {
        text += fmt::format("               {}: {}{}\n", interface, mode,
                            mode == "generic" ? ", slower: its driver has no XDP, or none at this MTU" : "");
    }
    for (const std::string& missing : shard.kernel->without_release) {
        text += fmt::format("  without marks, and release of aggregators by results of servers on this host: {}\n",
                            missing);
    }
    for (const std::string& missing : shard.kernel->without_copies) {
        text += fmt::format("  without copies of results: {}\n", missing);
    }
    return text;
}

}  // namespace

std::string start_text(const switchd::SwitchNode& node, const SwitchParts& parts) {
    const switchd::SwitchNodeConfig& config = node.config();
    std::string text = fmt::format("atp switch at {}\n", to_string(node.address()));
    if (config.parent.family() != wire::Family::none) {
        text += fmt::format("  parent       {}\n", to_string(config.parent));
    }
    text += memory_text(config);
    text += fmt::format("  jobs         {}, {}, servers up to {:.0f} MB\n", config.jobs,
                        counted(config.channels, "channel"), static_cast<double>(config.server_bytes) / 1e6);
    text += fmt::format("  tenants      {}\n", tenants_text(config));
    text += parts.additions;
    for (const client::ShardReport& shard : node.snapshot().shards) {
        if (shard.kernel) {
            text += kernel_text(shard, !parts.kernel.pipeline.empty()) + marks_text(parts.kernel, *shard.kernel);
            continue;
        }
        for (const std::string& missing : shard.features.missing()) text += fmt::format("  without {}\n", missing);
    }
    if (parts.marks != nullptr) text += marks_text(parts.marks->report());
    if (parts.serving != nullptr)
        text += fmt::format("  page         http://{}/\n", to_string(parts.serving->address()));
    return text + fmt::format("watch it with: atp stats {} --watch\n", to_string(node.address()));
}

std::string stop_text(const MarksPart* marks) {
    std::string text;
    for (const client::MarkReport& port : marks == nullptr ? std::vector<client::MarkReport>{} : marks->report()) {
        text += fmt::format("marked {} frames that left {}\n", port.marked, port.interface);
    }
    return text + "stopped\n";
}

}  // namespace atp::apps
