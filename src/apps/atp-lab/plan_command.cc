// SPDX-License-Identifier: Apache-2.0
#include "apps/atp-lab/plan_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "apps/common/flags.h"
#include "plan/plan.h"
#include "plan/read.h"
#include "plan/report.h"

namespace atp::apps {
namespace {

struct PlanOptions {
    std::string topology;
    std::string jobs;
    bool json = false;
};

constexpr const char* example_files = R"(  cluster.toml:                             jobs.toml:
    [[switch]]                                [[job]]
    name = "root"                             name = "vision"
    host_rate = "100Gbps"                     model = "VGG16"
                                              workers = { leaf1 = 4, leaf2 = 4 }
    [[switch]]
    name = "leaf1"                            [[job]]
    parent = "root"                           name = "text"
    host_rate = "100Gbps"                     parameters = 124000000
    uplink_rate = "100Gbps"                   compute = "80ms"
                                              workers = { leaf1 = 2, leaf2 = 2 }
    [[switch]]
    name = "leaf2"                          docs/research/plan.md has all keys.
    parent = "root"
    host_rate = "100Gbps"
    uplink_rate = "100Gbps"
)";

int run_plan(const PlanOptions& options) {
    const auto cluster = plan::read_cluster(options.topology, options.jobs);
    if (!cluster) {
        fmt::print(stderr, "atp-lab plan: {}\n", cluster.error());
        return exit_misused;
    }
    const plan::Plan made = plan::make_plan(*cluster);
    if (options.json) {
        fmt::print("{}\n", plan::to_json(*cluster, made));
    } else {
        fmt::print("{}", plan::to_text(*cluster, made));
    }
    return exit_passed;
}

}  // namespace

std::function<int()> register_plan(CLI::App& program) {
    auto options = std::make_shared<PlanOptions>();
    Command& command = Command::add(
        program, "plan", "Estimate what aggregating switches gain for your jobs, and how much memory they need");
    Flags flags(command, "Input and output");
    flags
        .text("--topology", options->topology, "FILE", "a path",
              "TOML file of switches, which may also be that of ATP_TOPOLOGY")
        ->required();
    flags.text("--jobs", options->jobs, "FILE", "a path", "TOML file of jobs")->required();
    flags.flag("--json", options->json, "Print one JSON object instead of tables");
    command.add_example("atp-lab plan --topology cluster.toml --jobs jobs.toml",
                        "Plan the two jobs below on two racks:");
    command.set_files(example_files);
    command.set_exit({{exit_passed, "planned"}, {exit_misused, "bad arguments or a wrong file"}});
    return [options] { return run_plan(*options); };
}

}  // namespace atp::apps
