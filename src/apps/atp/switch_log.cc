// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/switch_log.h"

#include <chrono>
#include <string>
#include <string_view>

#include "base/version.h"

namespace atp::apps {
namespace {

using observe::LogEvent;

std::int64_t milliseconds_of(Duration time) { return std::chrono::ceil<std::chrono::milliseconds>(time).count(); }

void log_missing(observe::Log& log, std::string_view text, const std::string& address) {
    const observe::MissingFeature missing = observe::missing_feature(text);
    log.write(LogEvent::feature_missing, {{"address", address}, {"name", missing.name}, {"reason", missing.reason}});
}

void log_settings(observe::Log& log, const switchd::SwitchNodeConfig& config, const std::string& address,
                  const observe::LogConfig& log_config, const std::string& trace) {
    const bool has_parent = config.parent.family() != wire::Family::none;
    log.write(LogEvent::switch_started,
              {{"address", address},
               {"parent", has_parent ? to_string(config.parent) : "none"},
               {"threads", config.shards},
               {"memory_bytes", config.memory_bytes},
               {"aggregators",
                config.kernel_aggregators != 0 ? config.kernel_aggregators : switchd::aggregators_of_shard(config)},
               {"lanes", config.lanes},
               {"jobs", config.jobs},
               {"channels", config.channels},
               {"server_bytes", config.server_bytes},
               {"ageing_ms", milliseconds_of(config.ageing)},
               {"hold_ms", milliseconds_of(config.hold)},
               {"spin_us", std::chrono::ceil<std::chrono::microseconds>(config.spin).count()},
               {"kernel", config.kernel_aggregators != 0 ? "yes" : "no"},
               {"tenants", tenants_text(config)},
               {"log_level", to_string(log_config.level)},
               {"log_format", to_string(log_config.format)},
               {"trace", trace.empty() ? "none" : trace},
               {"version", software_name()}});
}

}  // namespace

std::string tenants_text(const switchd::SwitchNodeConfig& config) {
    return config.tenants == nullptr ? "open: no tenants" : std::to_string(config.tenants->all().size());
}

void log_start(observe::Log& log, const switchd::SwitchNode& node, const observe::LogConfig& log_config,
               const std::string& trace) {
    log_settings(log, node.config(), to_string(node.address()), log_config, trace);
    for (const client::ShardReport& shard : node.snapshot().shards) {
        if (!shard.kernel) {
            for (const std::string& missing : shard.features.missing()) log_missing(log, missing, shard.address);
            continue;
        }
        for (const auto& [interface, mode] : shard.kernel->interfaces) {
            log.write(LogEvent::kernel_attached,
                      {{"interface", interface}, {"mode", mode}, {"level", shard.kernel->level}});
        }
    }
}

void log_stop(observe::Log& log, const switchd::SwitchNode& node, const std::vector<Error>& failures) {
    for (const Error& failure : failures) log.write(LogEvent::switch_failed, {{"reason", to_string(failure)}});
    const client::SwitchReport report = node.snapshot();
    std::uint64_t completed = 0, received = 0, sent = 0, refused = 0, left = 0, expired = 0, closed = 0;
    for (const client::ShardReport& shard : report.shards) {
        completed += shard.packets.events[ATP_EVENT_COMPLETED];
        received += shard.udp.received_packets;
        sent += shard.udp.sent_packets;
        refused += shard.tree.refused;
        left += shard.tree.left;
        expired += shard.tree.expired;
        closed += shard.tree.closed;
    }
    log.write(LogEvent::switch_stopped, {{"uptime_ms", static_cast<std::uint64_t>(report.uptime_s * 1e3)},
                                         {"received_packets", received},
                                         {"sent_packets", sent},
                                         {"completed", completed},
                                         {"joins_refused", refused},
                                         {"members_left", left},
                                         {"members_expired", expired},
                                         {"members_closed", closed}});
}

void log_kernel_stop(observe::Log& log, const std::vector<std::string>& interfaces,
                     const std::vector<Error>& failures) {
    for (const Error& failure : failures) log.write(LogEvent::kernel_failed, {{"reason", to_string(failure)}});
    if (!failures.empty()) return;
    for (const std::string& interface : interfaces) log.write(LogEvent::kernel_detached, {{"interface", interface}});
}

}  // namespace atp::apps
