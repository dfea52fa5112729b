// SPDX-License-Identifier: Apache-2.0
#include "apps/atp-lab/simulate_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "apps/atp-lab/scenario_flags.h"
#include "apps/common/flags.h"
#include "apps/common/progress.h"
#include "base/units.h"
#include "joining/swarm.h"
#include "sim/scenario_table.h"
#include "sim/simulation.h"
#include "sim/swarm.h"

namespace atp::apps {
namespace {

using Json = nlohmann::ordered_json;

// A signal handler can access no other state.
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void interrupt(int) { interrupted = true; }

struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

struct SimulateOptions {
    sim::Scenario scenario;
    std::uint64_t swarm = 0;
    unsigned threads = std::max(1U, std::thread::hardware_concurrency());
    bool joining = false;
    bool calm = false;
    bool json = false;
    std::string trace_path;
    std::vector<CLI::Option*> scenario_flags;
};

double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void print_replay(const std::string& flags) {
    fmt::print(stderr, "replay with a packet trace: atp-lab simulate {} --trace trace.txt\n", flags);
}

[[noreturn]] void fail_to_trace(const std::string& path, int error) {
    throw std::runtime_error(fmt::format("--trace: cannot write {}: {}", path, std::strerror(error)));
}

// nullptr if `path` is empty; throws if the file cannot be written.
File open_trace(const std::string& path) {
    if (path.empty()) return nullptr;
    File file(std::fopen(path.c_str(), "w"));
    if (!file) fail_to_trace(path, errno);
    return file;
}

// If the disk is full, the error may appear only when the last bytes are written.
void close_trace(File file, const std::string& path) {
    if (file && std::fclose(file.release()) != 0) fail_to_trace(path, errno);
}

sim::Report simulate(const sim::Scenario& scenario, const SimulateOptions& options, const sim::RunOptions& run) {
    try {
        return sim::run(scenario, run);
    } catch (const std::system_error& error) {
        if (run.trace == nullptr) throw;
        fail_to_trace(options.trace_path, error.code().value());
    }
}

int run_one(const sim::Scenario& scenario, const SimulateOptions& options, const std::string& replay) {
    if (const auto problem = sim::problem_of(scenario)) {
        fmt::print(stderr, "atp-lab simulate: {}\n", *problem);
        return exit_misused;
    }
    File file = open_trace(options.trace_path);
    sim::Trace trace(file.get());
    Progress progress;
    const auto begin = std::chrono::steady_clock::now();
    const sim::Report report = simulate(
        scenario, options,
        {.trace = file ? &trace : nullptr, .stop = &interrupted, .progress = [&](double share) {
             progress.show(fmt::format("{:5.1f} % of the fragments, {:.0f} s", 100 * share, seconds_since(begin)));
         }});
    progress.clear();
    close_trace(std::move(file), options.trace_path);
    const double seconds = seconds_since(begin);
    if (options.json) {
        fmt::print("{}\n", sim::to_json(report));
    } else {
        const std::string workers = scenario.job_workers.empty()
                                        ? fmt::format("{}", scenario.workers())
                                        : fmt::format("{}", fmt::join(scenario.job_workers, ", "));
        fmt::print("{} seed {}: {} jobs of {} workers, {} aggregators a switch\n\n{}", report.topology, report.seed,
                   scenario.jobs, workers, scenario.aggregators, sim::to_text(report));
        fmt::print("{} packet-hops in {:.2f} s: {:.2f} M/s\n", report.packet_hops, seconds,
                   static_cast<double>(report.packet_hops) / seconds / 1e6);
    }
    if (report.interrupted) return exit_interrupted;
    if (report.passed()) return exit_passed;
    print_replay(replay);
    return exit_failed;
}

Json to_json(const sim::SwarmSummary& s, const SimulateOptions& options) {
    return {{"first_seed", options.scenario.seed},
            {"runs", s.runs},
            {"failures", s.failures},
            {"verified", s.failures == 0},
            {"packet_hops", s.packet_hops},
            {"fragments", s.fragments},
            {"incarnations", s.incarnations},
            {"resends", s.resends},
            {"lost", s.lost},
            {"slowest_ms", to_milliseconds(s.slowest)},
            {"slowest_seed", s.slowest_seed}};
}

void print_failed_run(const sim::Report& report) {
    const std::string first = report.failures.empty() ? "not finished" : report.failures.front();
    fmt::print("seed {}: {}; replay: atp-lab simulate --swarm 1 --seed {} --trace trace.txt\n", report.seed, first,
               report.seed);
    std::fflush(stdout);
}

Json to_json(const joining::JoinSwarmSummary& s, const SimulateOptions& options) {
    return {{"first_seed", options.scenario.seed}, {"runs", s.runs},       {"failures", s.failures},
            {"verified", s.failures == 0},         {"packets", s.packets}, {"operations", s.operations},
            {"incarnations", s.incarnations},      {"errors", s.errors}};
}

const char* calm_flag(const SimulateOptions& options) { return options.calm ? " --calm" : ""; }

void print_failed_run(const joining::JoinReport& report, const SimulateOptions& options) {
    fmt::print(options.json ? stderr : stdout,
               "seed {}: {}; replay: atp-lab simulate --joining{} --seed {} --trace trace.txt\n", report.scenario.seed,
               report.failures.front(), calm_flag(options), report.scenario.seed);
    std::fflush(stdout);
}

// One scenario of joining, with a line for each event.
int run_one_joining(const SimulateOptions& options) {
    const std::uint64_t seed = options.scenario.seed;
    const auto scenario = options.calm ? joining::draw_calm_scenario(seed) : joining::draw_join_scenario(seed);
    File file = open_trace(options.trace_path);
    const joining::JoinReport report = joining::run_joining(scenario, file.get());
    close_trace(std::move(file), options.trace_path);
    if (options.json) {
        fmt::print("{}\n", Json{{"seed", seed},
                                {"scenario", joining::text_of(scenario)},
                                {"failures", report.failures},
                                {"packets", report.packets},
                                {"operations", report.operations},
                                {"incarnations", report.incarnations},
                                {"errors", report.errors}}
                               .dump(2));
    } else {
        fmt::print("seed {}: {}\n{} packets, {} operations, {} incarnations ready, {} errors of ranks\n", seed,
                   joining::text_of(scenario), report.packets, report.operations, report.incarnations, report.errors);
        for (const std::string& failure : report.failures) fmt::print("failed: {}\n", failure);
    }
    return report.failures.empty() ? exit_passed : exit_failed;
}

struct SwarmOutcome {
    bool passed = false;
    Json json;
    std::string text;  // one line for people
};

SwarmOutcome run_joining_swarm(const SimulateOptions& options) {
    Progress progress;
    const auto begin = std::chrono::steady_clock::now();
    joining::JoinSwarmOptions swarm{.first_seed = options.scenario.seed,
                                    .runs = options.swarm,
                                    .threads = options.threads,
                                    .calm = options.calm,
                                    .stop = &interrupted,
                                    .failed = {},
                                    .progress = {}};
    swarm.failed = [&](const joining::JoinReport& report) {
        progress.clear();
        print_failed_run(report, options);
    };
    swarm.progress = [&](std::uint64_t done) {
        progress.show(fmt::format("{} of {} runs of joining", done, options.swarm));
    };
    const joining::JoinSwarmSummary s = joining::run_join_swarm(swarm);
    progress.clear();
    return {.passed = s.failures == 0,
            .json = to_json(s, options),
            .text = fmt::format(
                "joining: {} runs from seed {}: {} failed; {} packets, {} operations, {} incarnations ready, {} errors "
                "of ranks; {:.1f} s",
                s.runs, options.scenario.seed, s.failures, s.packets, s.operations, s.incarnations, s.errors,
                seconds_since(begin))};
}

SwarmOutcome run_data_swarm(const SimulateOptions& options) {
    Progress progress;
    const auto begin = std::chrono::steady_clock::now();
    sim::SwarmOptions swarm{.first_seed = options.scenario.seed,
                            .runs = options.swarm,
                            .threads = options.threads,
                            .stop = &interrupted,
                            .failed = {},
                            .progress = {}};
    swarm.failed = [&](const sim::Report& report) {
        progress.clear();
        if (options.json) {
            fmt::print(stderr, "seed {}: {}\n", report.seed, report.failures.empty() ? "" : report.failures.front());
        } else {
            print_failed_run(report);
        }
    };
    swarm.progress = [&](std::uint64_t done) { progress.show(fmt::format("{} of {} runs", done, options.swarm)); };
    const sim::SwarmSummary s = sim::run_swarm(swarm);
    progress.clear();
    return {.passed = s.failures == 0,
            .json = to_json(s, options),
            .text = fmt::format(
                "{} runs from seed {}: {} failed; {} fragments, {} packet-hops, {} packets lost, {} resends, "
                "{} incarnations; slowest seed {} after {:.1f} ms of virtual time; {:.1f} s",
                s.runs, options.scenario.seed, s.failures, s.fragments, s.packet_hops, s.lost, s.resends,
                s.incarnations, s.slowest_seed, to_milliseconds(s.slowest), seconds_since(begin))};
}

void print_line(const SwarmOutcome& outcome, const SimulateOptions& options) {
    if (options.json) return;
    fmt::print("{}\n", outcome.text);
    std::fflush(stdout);
}

// The scenarios of data, unless only joining was asked for, then those of joining.
int run_swarm(const SimulateOptions& options) {
    std::optional<SwarmOutcome> data;
    if (!options.joining) print_line(data.emplace(run_data_swarm(options)), options);
    if (interrupted) return exit_interrupted;
    SwarmOutcome of_joining = run_joining_swarm(options);
    print_line(of_joining, options);
    if (options.json) {
        Json json = data ? std::move(data->json) : of_joining.json;
        if (data) json["joining"] = std::move(of_joining.json);
        fmt::print("{}\n", json.dump(2));
    }
    if (interrupted) return exit_interrupted;
    return of_joining.passed && (!data || data->passed) ? exit_passed : exit_failed;
}

// A flag without effect is a mistake of the user.
std::optional<std::string> problem_of_swarm(const SimulateOptions& options) {
    for (const CLI::Option* flag : options.scenario_flags) {
        if (flag->count() == 0) continue;
        return fmt::format(
            "{0} excludes --swarm and --joining, which draw whole scenarios from their seeds: remove {0}",
            flag->get_name());
    }
    if (options.calm && !options.joining) return "--calm needs --joining";
    if (options.swarm > 1 && !options.trace_path.empty()) return "--trace needs a single run: use --swarm 1 --seed N";
    return std::nullopt;
}

int run_simulate(const SimulateOptions& options) {
    if (options.swarm != 0 || options.joining) {
        if (const auto problem = problem_of_swarm(options)) {
            fmt::print(stderr, "atp-lab simulate: {}\n", *problem);
            return exit_misused;
        }
    }
    std::signal(SIGINT, interrupt);
    std::signal(SIGTERM, interrupt);
    if (options.swarm > 1) return run_swarm(options);
    if (options.joining) return run_one_joining(options);
    if (options.swarm == 0) return run_one(options.scenario, options, sim::to_flags(options.scenario));
    const sim::Scenario drawn = sim::draw_scenario(options.scenario.seed);
    if (!options.json) fmt::print("seed {} draws: {}\n", drawn.seed, sim::to_flags(drawn));
    return run_one(drawn, options, fmt::format("--swarm 1 --seed {}", drawn.seed));
}

}  // namespace

std::function<int()> register_simulate(CLI::App& program) {
    auto options = std::make_shared<SimulateOptions>();
    CLI::App* command = program.add_subcommand(
        "simulate", "Run the shipped state machines in a simulated network, and verify every bit of every sum");
    add_scenario_flags(*command, options->scenario);
    for (CLI::Option* flag : command->get_options()) {
        if (flag != command->get_help_ptr()) options->scenario_flags.push_back(flag);
    }
    Flags flags(*command, "What to run and show");
    flags.number("--seed", options->scenario.seed, 0, UINT64_MAX, "Seed of all random decisions [1]");
    flags.number("--swarm", options->swarm, 1, 1'000'000'000,
                 "Run N random scenarios of sums and N of joining, drawn from the seeds --seed, --seed + 1, ...");
    flags.flag(
        "--joining", options->joining,
        "Run only scenarios of joining and failures, with one fault each: ranks and switches join, sum, fail and join "
        "again");
    flags.flag("--calm", options->calm, "With --joining: make no fault, so that no rank may fail");
    flags.number("--threads", options->threads, 1, 1024, "Threads of a swarm [all cores]");
    flags.flag("--json", options->json, "Print one JSON object instead of tables");
    const auto path = [](std::string_view text) -> std::optional<std::string> {
        if (text.empty()) return std::nullopt;
        return std::string(text);
    };
    flags.parsed("--trace", options->trace_path, "FILE", path, "the name of a file",
                 "Write one line per event of each packet to this file [none]");
    command->footer(
        "Exit status: 0 every sum right and every job finished, 1 not, 2 bad arguments, 130 after Ctrl-C or SIGTERM.");
    return [options] { return run_simulate(*options); };
}

}  // namespace atp::apps
