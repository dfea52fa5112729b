// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/metrics_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/atp/metrics_part.h"
#include "apps/atp/switch_sources.h"
#include "apps/common/confinement.h"
#include "apps/common/flags.h"
#include "apps/common/output.h"
#include "apps/common/signals.h"

namespace atp::apps {
namespace {

struct MetricsCommand {
    std::vector<std::string> switches;
    MetricsOptions serving{.http = "127.0.0.1:9790"};
    Duration timeout = std::chrono::seconds(1);
    bool once = false;
    bool quiet = false;
};

int misused(const Error& error) {
    fmt::print(stderr, "atp metrics: {}\n", to_string(error));
    return exit_misused;
}

int run_metrics(const MetricsCommand& options) {
    auto sources = sources_of(options.switches, options.timeout);
    if (!sources) return misused(sources.error());
    if (options.once) {
        fmt::print("{}", metrics::Exporter(std::move(sources->sources)).metrics(metrics::TextFormat::prometheus));
        return show_output() ? exit_passed : exit_failed;
    }
    const StopSignals signals;
    const auto part = MetricsPart::start(options.serving, std::move(sources->sources));
    if (!part) return misused(part.error());
    if (!options.quiet) {
        fmt::print("metrics at http://{}/metrics, page at http://{}/\n", to_string((*part)->address()),
                   to_string((*part)->address()));
        if (!show_output()) return exit_failed;
    }
    keep_capabilities({});
    if (auto confined = confine_system_calls(usual_confinement); !confined) {
        fmt::print(stderr, "atp metrics: goes on without a filter of system calls: {}\n", to_string(confined.error()));
    }
    (void)signals.wait();
    sources->close();
    return exit_passed;
}

}  // namespace

std::function<int()> register_metrics(CLI::App& program) {
    auto options = std::make_shared<MetricsCommand>();
    Command& command =
        Command::add(program, "metrics", "Serve the counters of switches to Prometheus, and a live page");
    command.add_option("SWITCH", options->switches, "Addresses of switches")->type_name("ADDRESS")->required();
    Flags flags(command, "Serving");
    flags.address("--http", options->serving.http, "Local address for HTTP; port 0: any free one [127.0.0.1:9790]");
    flags.text("--http-key", options->serving.key_file, "FILE", "a path",
               "File with the operator's key, which scrapers and browsers must send; needed if a switch has tenants "
               "[none]");
    flags.parsed("--timeout", options->timeout, "TIME", parse_wait, wait_forms,
                 "Longest wait for the answer of a switch [1s]");
    flags.flag("--once", options->once, "Print the metrics and end, for a text file collector");
    flags.flag("--quiet", options->quiet, "Print errors only");
    command.add_example("atp metrics 10.0.0.1:4790 10.0.1.1:4790",
                        "Show two switches at http://127.0.0.1:9790/, and serve what Prometheus scrapes.");
    command.set_exit({{exit_passed, "stopped by SIGTERM or SIGINT, or --once printed"},
                      {exit_failed, "the output failed"},
                      {exit_misused, "bad arguments or no start"}});
    return [options] { return run_metrics(*options); };
}

}  // namespace atp::apps
