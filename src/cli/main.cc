// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <functional>
#include <utility>
#include <vector>

#include "cli/bench_command.h"
#include "cli/check_command.h"
#include "cli/command.h"
#include "cli/simulate_command.h"
#include "cli/stats_command.h"
#include "cli/switch_command.h"

namespace {

// Every subcommand, in the order in which --help shows them.
constexpr atp::cli::Register commands[] = {
    atp::cli::register_switch,
    atp::cli::register_stats,
    atp::cli::register_bench,
    atp::cli::register_simulate,
    atp::cli::register_check,
};

int run(int argc, char** argv) {
    CLI::App program("ATP sums tensors inside the network", "atp");
    program.require_subcommand(1);
    program.get_formatter()->column_width(34);
    std::vector<std::pair<CLI::App*, std::function<int()>>> registered;
    for (const atp::cli::Register command : commands) {
        std::function<int()> body = command(program);
        registered.emplace_back(program.get_subcommands({}).back(), std::move(body));
    }
    try {
        program.parse(argc, argv);
    } catch (const CLI::Success& asked_for_help) {
        return program.exit(asked_for_help);
    } catch (const CLI::ParseError& error) {
        fmt::print(stderr, "atp: {}\nTry --help.\n", error.what());
        return atp::cli::exit_misused;
    }
    for (const auto& [subcommand, body] : registered) {
        if (subcommand->parsed()) return body();
    }
    return atp::cli::exit_misused;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        fmt::print(stderr, "atp: {}\n", error.what());
        return atp::cli::exit_failed;
    }
}
