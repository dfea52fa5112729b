// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "cli/bench_command.h"
#include "cli/check_command.h"
#include "cli/command.h"
#include "cli/doctor_command.h"
#include "cli/figure_command.h"
#include "cli/models_command.h"
#include "cli/output.h"
#include "cli/plan_command.h"
#include "cli/simulate_command.h"
#include "cli/stats_command.h"
#include "cli/switch_command.h"
#include "net/switch_node.h"

namespace {

// Every subcommand, in the order in which --help shows them.
constexpr atp::cli::Register commands[] = {
    atp::cli::register_switch, atp::cli::register_stats,    atp::cli::register_bench,
    atp::cli::register_doctor, atp::cli::register_simulate, atp::cli::register_models,
    atp::cli::register_figure, atp::cli::register_check,    atp::cli::register_plan,
};

int run(int argc, char** argv) {
    CLI::App program("ATP sums tensors inside the network", "atp");
    program.require_subcommand(0, 1);  // none is told below: an unknown one shall be told by its name
    program.set_version_flag("--version", atp::net::software_name());
    program.get_formatter()->column_width(34);
    std::vector<std::pair<CLI::App*, std::function<int()>>> registered;
    for (const atp::cli::Register command : commands) {
        std::function<int()> body = command(program);
        registered.emplace_back(program.get_subcommands({}).back(), std::move(body));
    }
    try {
        program.parse(argc, argv);
    } catch (const CLI::Success& answered) {  // --help, --version
        return program.exit(answered);
    } catch (const CLI::ParseError& error) {
        fmt::print(stderr, "atp: {}\nTry --help.\n", error.what());
        return atp::cli::exit_misused;
    }
    std::string names;
    for (const auto& [subcommand, body] : registered) {
        if (subcommand->parsed()) return body();
        names += fmt::format("{}{}", names.empty() ? "" : " or ", subcommand->get_name());
    }
    fmt::print(stderr, "atp: give a subcommand: {}\nTry --help.\n", names);
    return atp::cli::exit_misused;
}

// What could not be written was not said: a result that nobody has is no success.
int after_output(int status) {
    if (atp::cli::show_output()) return status;
    fmt::print(stderr, "atp: cannot write to standard output\n");
    return status == atp::cli::exit_passed ? atp::cli::exit_failed : status;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return after_output(run(argc, argv));
    } catch (const std::bad_alloc&) {
        fmt::print(stderr, "atp: there is not enough memory for this\n");
        return atp::cli::exit_failed;
    } catch (const std::exception& error) {
        fmt::print(stderr, "atp: {}\n", error.what());
        return atp::cli::exit_failed;
    }
}
