// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/stats_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "apps/atp/stats_text.h"
#include "apps/common/flags.h"
#include "apps/common/interruption.h"
#include "apps/common/output.h"
#include "base/units.h"
#include "client/switch_client.h"
#include "client/switch_report.h"
#include "net/clock.h"
#include "net/resolve.h"

namespace atp::apps {
namespace {

struct StatsOptions {
    std::string address;
    bool json = false;
    bool watch = false;
    Duration interval = std::chrono::seconds(1);
    Duration timeout = std::chrono::seconds(2);
};

// A signal ends --watch, which is then complete, or the wait for the first report.
int run_stats(const StatsOptions& options) {
    const auto addresses = net::resolve(options.address);
    if (!addresses) {
        fmt::print(stderr, "atp stats: {}\n", to_string(addresses.error()));
        return exit_misused;
    }
    Interruption interruption;
    auto client = client::SwitchClient::open(addresses->front());
    if (!client) {
        fmt::print(stderr, "atp stats: {}\n", to_string(client.error()));
        return exit_failed;
    }
    const auto ends_wait = interruption.ends([&] { (*client)->close(); });
    StatsTotals before;
    std::optional<Time> asked;  // nullopt: no report was shown
    while (true) {
        const Time at = net::now();
        const auto text = (*client)->report(at + options.timeout);
        if (!text && interruption.came()) return asked ? exit_passed : exit_interrupted;
        if (!text) {
            fmt::print(stderr, "atp stats: {}\n", to_string(text.error()));
            return exit_failed;
        }
        const auto json = client::printable_report(*text);
        const auto report = options.json ? std::nullopt : client::read_switch_report(*text);
        if (!json || (!options.json && !report)) {
            fmt::print(stderr, "atp stats: {} sent a report that this version cannot read\n", options.address);
            return exit_failed;
        }
        if (options.json) {
            fmt::print("{}\n", *json);
        } else {
            if (options.watch && isatty(STDOUT_FILENO) != 0) fmt::print("\033[H\033[2J");
            fmt::print("{}",
                       stats_text(*report, before, std::chrono::duration<double>(at - asked.value_or(Time{})).count()));
            before = totals_of(*report);
        }
        if (!show_output()) return exit_failed;
        asked = at;
        if (!options.watch) return exit_passed;
        if (interruption.wait_for(options.interval)) return exit_passed;
    }
}

}  // namespace

std::function<int()> register_stats(CLI::App& program) {
    auto options = std::make_shared<StatsOptions>();
    Command& command = Command::add(program, "stats", "Show the counters of a switch and of its jobs");
    command.add_option("ADDRESS", options->address, "Address of the switch")->type_name("ADDRESS")->required();
    Flags flags(command, "Output");
    flags.flag("--json", options->json, "Print each report as one line of JSON");
    flags.flag("--watch", options->watch, "Print a report with rates every --interval, until Ctrl-C");
    flags.parsed("--interval", options->interval, "TIME", parse_wait, wait_forms,
                 "Time between two reports of --watch [1s]");
    flags.parsed("--timeout", options->timeout, "TIME", parse_wait, wait_forms, "Longest wait for an answer [2s]");
    command.add_example("atp stats 10.0.0.1:4790 --watch", "Show what each job does, every second.");
    command.set_exit({{exit_passed, "report printed"},
                      {exit_failed, "no answer or the output failed"},
                      {exit_misused, "bad arguments"},
                      {exit_interrupted, "after a signal without a report"}});
    return [options] { return run_stats(*options); };
}

}  // namespace atp::apps
