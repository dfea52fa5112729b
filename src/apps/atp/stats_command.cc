// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/stats_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/common/flags.h"
#include "apps/common/output.h"
#include "apps/common/signals.h"
#include "apps/common/value_texts.h"
#include "client/switch_client.h"
#include "net/clock.h"
#include "net/resolve.h"

namespace atp::apps {
namespace {

using Json = nlohmann::ordered_json;

struct StatsOptions {
    std::string address;
    bool json = false;
    bool watch = false;
    Duration interval = std::chrono::seconds(1);
    Duration timeout = std::chrono::seconds(2);
};

std::uint64_t value(const Json& json, const char* key) { return json.value(key, std::uint64_t{0}); }

// Counters of all shards, summed by name.
std::map<std::string, std::uint64_t> sum_packets(const Json& report) {
    std::map<std::string, std::uint64_t> sums;
    for (const Json& shard : report["shards"]) {
        for (const auto& [name, count] : shard["packets"].items()) sums[name] += count.get<std::uint64_t>();
        for (const auto& [name, count] : shard["refused"].items()) sums["refused"] += count.get<std::uint64_t>();
        sums["dropped_by_kernel"] += value(shard["udp"], "dropped_by_kernel");
        sums["received"] += value(shard["udp"], "received_packets");
        sums["sent"] += value(shard["udp"], "sent_packets");
        sums["received_bytes"] += value(shard["udp"], "received_bytes");
        sums["sent_bytes"] += value(shard["udp"], "sent_bytes");
        sums["unrouted"] += value(shard, "unrouted");
    }
    return sums;
}

void print_kernels(const Json& report) {
    for (const Json& shard : report["shards"]) {
        if (!shard.contains("kernel")) continue;
        const Json& kernel = shard["kernel"];
        std::string interfaces;
        for (const auto& [name, mode] : kernel["interfaces"].items()) {
            interfaces += fmt::format("{}{} {}", interfaces.empty() ? "" : ", ", name, mode.get<std::string>());
        }
        fmt::print(
            "\ninside the kernel: {}; {} aggregators of {} lanes; passed {} with more, and {} damaged; {} JOINs not "
            "admitted; {} jobs let pass\n",
            interfaces, value(shard, "aggregators"), value(kernel, "lanes"), value(kernel, "oversized"),
            value(kernel, "damaged"), value(kernel, "not_admitted"),
            kernel.value("passing_jobs", Json::array()).size());
    }
}

void print_jobs(const Json& report) {
    fmt::print("\n{:>10} {:>10} {:>10} {:>10} {:>10} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "job", "claimed", "added",
               "completed", "collisions", "resends", "flushes", "ecn", "overflow", "forged");
    for (const Json& shard : report["shards"]) {
        for (const Json& job : shard["jobs"]) {
            const Json& p = job["packets"];
            fmt::print("{:>10x} {:>10} {:>10} {:>10} {:>10} {:>8} {:>8} {:>8} {:>8} {:>8}\n", value(job, "job"),
                       value(p, "claimed"), value(p, "added"), value(p, "completed"), value(p, "collisions"),
                       value(p, "resends") + value(p, "fetched"), value(p, "flushes"), value(p, "ecn"),
                       value(p, "overflows"), value(p, "forged"));
        }
    }
    for (const Json& shard : report["shards"]) {
        for (const Json& channel : shard["channels"]) {
            fmt::print("  job {:x} channel {}: level {}, {} of {} there{}{}, results by {}\n", value(channel, "job"),
                       value(channel, "channel"), value(channel, "level"), value(channel, "present"),
                       value(channel, "expected"), channel.value("ready", false) ? "" : ", waiting",
                       channel.value("hosts_server", false) ? ", server here" : "",
                       channel.value("results", std::string("unicast")));
        }
    }
}

void print_report(const Json& report, const std::map<std::string, std::uint64_t>& before, double seconds) {
    const auto now = sum_packets(report);
    fmt::print("{} at {}, up {:.0f} s, {:.1f} MB of aggregators of {} lanes{}\n",
               report.value("software", std::string("?")), report.value("address", std::string("?")),
               report.value("uptime_s", 0.0), static_cast<double>(value(report, "memory_bytes")) / 1e6,
               value(report, "lanes"),
               report.contains("parent") ? ", parent " + report["parent"].get<std::string>() +
                                               (report.value("parent_answers", false) ? "" : " (does not answer)")
                                         : std::string());
    for (const auto& [name, count] : now) {
        if (count == 0) continue;
        const auto earlier = before.find(name);
        if (earlier == before.end() || seconds <= 0) {
            fmt::print("  {:<20} {:>16}\n", name, count);
        } else {
            fmt::print("  {:<20} {:>16} {:>14.0f}/s\n", name, count,
                       static_cast<double>(count - std::min(count, earlier->second)) / seconds);
        }
    }
    print_kernels(report);
    print_jobs(report);
}

int run_stats(const StatsOptions& options) {
    const auto addresses = net::resolve(options.address);
    if (!addresses) {
        fmt::print(stderr, "atp stats: {}\n", to_string(addresses.error()));
        return exit_misused;
    }
    const StopSignals signals;
    auto client = client::SwitchClient::open(addresses->front());
    if (!client) {
        fmt::print(stderr, "atp stats: {}\n", to_string(client.error()));
        return exit_failed;
    }
    std::map<std::string, std::uint64_t> before;
    Time asked{};
    while (true) {
        const Time at = net::now();
        const auto text = (*client)->report(at + options.timeout);
        if (!text) {
            fmt::print(stderr, "atp stats: {}\n", to_string(text.error()));
            return exit_failed;
        }
        if (options.json) {
            fmt::print("{}\n", *text);
        } else {
            const Json report = Json::parse(*text, nullptr, false);
            if (report.is_discarded()) {
                fmt::print(stderr, "atp stats: {} sent a report that is no JSON\n", options.address);
                return exit_failed;
            }
            if (options.watch && isatty(STDOUT_FILENO) != 0) fmt::print("\033[H\033[2J");
            print_report(report, before, std::chrono::duration<double>(at - asked).count());
            before = sum_packets(report);
        }
        if (!show_output()) return exit_failed;
        asked = at;
        if (!options.watch) return exit_passed;
        if (signals.wait_for(options.interval)) return exit_passed;
    }
}

}  // namespace

std::function<int()> register_stats(CLI::App& program) {
    auto options = std::make_shared<StatsOptions>();
    CLI::App* command = program.add_subcommand("stats", "Show what a switch counts, for each job");
    command->add_option("ADDRESS", options->address, "of the switch, host:port")->required();
    Flags flags(*command, "Output");
    flags.flag("--json", options->json, "the whole report, a JSON object a line");
    flags.flag("--watch", options->watch, "again and again, with rates, until ctrl-C");
    flags.parsed("--interval", options->interval, "TIME", parse_wait, wait_forms, "of --watch [1s]");
    flags.parsed("--timeout", options->timeout, "TIME", parse_wait, wait_forms, "to wait for an answer [2s]");
    return [options] { return run_stats(*options); };
}

}  // namespace atp::apps
