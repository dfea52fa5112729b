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
#include "base/text.h"
#include "sim/scenario_table.h"
#include "sim/scenario_text.h"
#include "sim/shrink.h"
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

int refused(const std::string& why) {
    fmt::print(stderr, "atp-lab simulate: {}\n", why);
    return exit_misused;
}

int run_one(const sim::Scenario& scenario, const SimulateOptions& options, const std::string& replay) {
    if (const auto problem = sim::problem_of(scenario)) return refused(*problem);
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
                                        ? counted(scenario.workers(), "worker")
                                        : fmt::format("{} workers", fmt::join(scenario.job_workers, ", "));
        fmt::print("{} seed {}: {} of {}, {} a switch\n\n{}", report.topology, report.seed,
                   counted(scenario.jobs, "job"), workers, counted(scenario.aggregators, "aggregator"),
                   sim::to_text(report));
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
            {"formed_again", s.formed_again},
            {"errors", s.errors},
            {"resends", s.resends},
            {"lost", s.lost},
            {"slowest_ms", to_milliseconds(s.slowest)},
            {"slowest_seed", s.slowest_seed}};
}

sim::SwarmProfile profile_of(const SimulateOptions& options) {
    if (!options.joining) return sim::SwarmProfile::mixed;
    return options.calm ? sim::SwarmProfile::calm : sim::SwarmProfile::outages;
}

// The flags that draw the same scenario again.
std::string profile_flags(const SimulateOptions& options) {
    return fmt::format("{}{}", options.joining ? "--joining " : "", options.calm ? "--calm " : "");
}

void print_failed_run(const sim::Report& report, const SimulateOptions& options) {
    const std::string first = report.failures.empty() ? "not finished" : report.failures.front();
    fmt::print(options.json ? stderr : stdout,
               "seed {}: {}; replay: atp-lab simulate {}--swarm 1 --seed {} --trace trace.txt\n", report.seed, first,
               profile_flags(options), report.seed);
    std::fflush(stdout);
}

// A scenario drawn from a seed has many jobs, ranks and faults; few of them matter.
void print_shrunk(std::uint64_t seed, const SimulateOptions& options) {
    constexpr unsigned most_runs = 300;
    const sim::Scenario drawn = sim::draw_scenario(seed, profile_of(options));
    fmt::print(stderr, "  draws: {}\n", sim::text_of(drawn));
    const sim::Shrunk shrunk = sim::shrink(drawn, most_runs, &interrupted);
    fmt::print(stderr, "  smallest of {} runs that fails: {}\n", shrunk.runs, sim::text_of(shrunk.scenario));
    for (const std::string& failure : shrunk.failures) fmt::print(stderr, "    {}\n", failure);
    fmt::print(stderr, "    atp-lab simulate {}\n", sim::to_flags(shrunk.scenario));
}

int run_swarm(const SimulateOptions& options) {
    constexpr unsigned most_shrunk = 3;
    Progress progress;
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::uint64_t> failed;
    sim::SwarmOptions swarm{.first_seed = options.scenario.seed,
                            .runs = options.swarm,
                            .threads = options.threads,
                            .profile = profile_of(options),
                            .stop = &interrupted,
                            .failed = {},
                            .progress = {}};
    swarm.failed = [&](const sim::Report& report) {
        progress.clear();
        failed.push_back(report.seed);
        print_failed_run(report, options);
    };
    swarm.progress = [&](std::uint64_t done) { progress.show(fmt::format("{} of {} runs", done, options.swarm)); };
    const sim::SwarmSummary s = sim::run_swarm(swarm);
    progress.clear();
    if (options.json) {
        fmt::print("{}\n", to_json(s, options).dump(2));
    } else {
        fmt::print(
            "{} runs from seed {}: {} failed; {} fragments, {} packet-hops, {} packets lost, {} resends, "
            "{} incarnations, {:.0f} % of the runs formed again, {} errors of ranks; slowest seed {} after "
            "{:.1f} ms of virtual time; {:.1f} s\n",
            s.runs, options.scenario.seed, s.failures, s.fragments, s.packet_hops, s.lost, s.resends, s.incarnations,
            100.0 * static_cast<double>(s.formed_again) / static_cast<double>(s.runs), s.errors, s.slowest_seed,
            to_milliseconds(s.slowest), seconds_since(begin));
        std::fflush(stdout);
    }
    for (std::size_t i = 0; i < failed.size() && i < most_shrunk && !interrupted; ++i) {
        fmt::print(stderr, "seed {}\n", failed[i]);
        print_shrunk(failed[i], options);
    }
    if (interrupted) return exit_interrupted;
    return s.failures == 0 ? exit_passed : exit_failed;
}

// A flag without effect is a mistake of the user.
std::optional<std::string> problem_of_swarm(const SimulateOptions& options) {
    for (const CLI::Option* flag : options.scenario_flags) {
        if (flag->count() == 0) continue;
        return fmt::format(
            "{0} excludes --swarm and --joining, which draw whole scenarios from their seeds: remove {0}",
            flag->get_name());
    }
    if (options.swarm > 1 && !options.trace_path.empty()) return "--trace needs a single run: use --swarm 1 --seed N";
    return std::nullopt;
}

int run_simulate(const SimulateOptions& options) {
    std::optional<std::string> problem;
    if (options.calm && !options.joining) problem = "--calm needs --joining";
    if (!problem && (options.swarm != 0 || options.joining)) problem = problem_of_swarm(options);
    if (problem) return refused(*problem);
    std::signal(SIGINT, interrupt);
    std::signal(SIGTERM, interrupt);
    if (options.swarm > 1) return run_swarm(options);
    if (options.swarm == 0 && !options.joining) {
        return run_one(options.scenario, options, sim::to_flags(options.scenario));
    }
    const sim::Scenario drawn = sim::draw_scenario(options.scenario.seed, profile_of(options));
    if (!options.json) {
        fmt::print("seed {} draws {}\nas flags: {}\n", drawn.seed, sim::text_of(drawn), sim::to_flags(drawn));
    }
    return run_one(drawn, options, fmt::format("{}--swarm 1 --seed {}", profile_flags(options), drawn.seed));
}

}  // namespace

std::function<int()> register_simulate(CLI::App& program) {
    auto options = std::make_shared<SimulateOptions>();
    Command& command =
        Command::add(program, "simulate",
                     "Run the shipped state machines in a simulated network, and verify every bit of every sum");
    add_scenario_flags(command, options->scenario);
    for (CLI::Option* flag : command.get_options()) {
        if (flag != command.get_help_ptr()) options->scenario_flags.push_back(flag);
    }
    Flags flags(command, "Run and output");
    flags.number("--seed", options->scenario.seed, 0, UINT64_MAX, "Seed of all random decisions [1]");
    flags.number("--swarm", options->swarm, 1, 1'000'000'000,
                 "Run N random scenarios, drawn from the seeds --seed, --seed + 1, ...");
    flags.flag("--joining", options->joining,
               "Draw only jobs of seconds with one outage each, in which every error must name the outage");
    flags.flag("--calm", options->calm, "With --joining: make no fault, so that no rank may fail");
    flags.number("--threads", options->threads, 1, 1024, "Threads of a swarm [all cores]");
    flags.flag("--json", options->json, "Print one JSON object instead of tables");
    flags.text("--trace", options->trace_path, "FILE", "a path",
               "Write one line per event of each packet to this file [none]");
    command.add_example("atp-lab simulate --topology racks:2x4 --bytes 10MB --loss 0.001",
                        "Sum 10 MB in two racks of four hosts, over links that lose packets.");
    command.set_exit({{exit_passed, "every sum right, and every job finished or given up after --leave"},
                      {exit_failed, "a sum is wrong, or a job did not finish"},
                      {exit_misused, "bad arguments"},
                      {exit_interrupted, "after Ctrl-C or SIGTERM"}});
    return [options] { return run_simulate(*options); };
}

}  // namespace atp::apps
