// SPDX-License-Identifier: Apache-2.0
#include "cli/simulate_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "cli/flags.h"
#include "cli/scenario_flags.h"
#include "cli/units.h"
#include "sim/simulation.h"
#include "sim/swarm.h"

namespace atp::cli {
namespace {

// A signal handler can reach nothing else.
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void interrupt(int) { interrupted = true; }

struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

struct Options {
    sim::Scenario scenario;
    std::uint64_t swarm = 0;
    unsigned threads = std::max(1U, std::thread::hardware_concurrency());
    bool json = false;
    std::string trace_path;
};

double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// One line that is written over, where somebody looks on; nothing otherwise.
class Progress {
  public:
    void show(std::string_view text) {
        const auto now = std::chrono::steady_clock::now();
        if (!terminal_ || now < next_) return;
        next_ = now + std::chrono::milliseconds(200);
        fmt::print(stderr, "\r{}\033[K", text);
        shown_ = true;
    }
    void clear() {
        if (shown_) fmt::print(stderr, "\r\033[K");
        shown_ = false;
    }

  private:
    bool terminal_ = isatty(STDERR_FILENO) != 0;
    bool shown_ = false;
    // Short runs show nothing.
    std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + std::chrono::seconds(1);
};

void print_replay(const std::string& flags) {
    fmt::print(stderr, "replay with a packet trace: atp simulate {} --trace trace.txt\n", flags);
}

// nullptr with an empty path; throws where the file cannot be written.
File open_trace(const std::string& path) {
    if (path.empty()) return nullptr;
    File file(std::fopen(path.c_str(), "w"));
    if (!file) throw std::runtime_error(fmt::format("--trace: cannot write {}", path));
    return file;
}

int run_one(const sim::Scenario& scenario, const Options& options, const std::string& replay) {
    if (const auto problem = sim::problem_of(scenario)) {
        fmt::print(stderr, "atp simulate: {}\n", *problem);
        return exit_misused;
    }
    const File file = open_trace(options.trace_path);
    sim::Trace trace(file.get());
    Progress progress;
    const auto begin = std::chrono::steady_clock::now();
    const sim::Report report = sim::run(
        scenario,
        {.trace = file ? &trace : nullptr, .stop = &interrupted, .progress = [&](double share) {
             progress.show(fmt::format("{:5.1f} % of the fragments, {:.0f} s", 100 * share, seconds_since(begin)));
         }});
    progress.clear();
    const double seconds = seconds_since(begin);
    if (options.json) {
        fmt::print("{}\n", sim::to_json(report));
    } else {
        fmt::print("{} seed {}: {} jobs of {} workers, {} aggregators a switch\n\n{}", report.topology, report.seed,
                   scenario.jobs, scenario.workers(), scenario.aggregators, sim::to_text(report));
        fmt::print("{} packet-hops in {:.2f} s: {:.2f} M/s\n", report.packet_hops, seconds,
                   static_cast<double>(report.packet_hops) / seconds / 1e6);
    }
    if (report.interrupted) return exit_interrupted;
    if (report.passed()) return exit_passed;
    print_replay(replay);
    return exit_failed;
}

std::string summary_json(const sim::SwarmSummary& s, const Options& options) {
    return nlohmann::ordered_json{{"first_seed", options.scenario.seed},
                                  {"runs", s.runs},
                                  {"failures", s.failures},
                                  {"verified", s.failures == 0},
                                  {"packet_hops", s.packet_hops},
                                  {"fragments", s.fragments},
                                  {"incarnations", s.incarnations},
                                  {"resends", s.resends},
                                  {"lost", s.lost},
                                  {"slowest_ms", static_cast<double>(s.slowest.count()) / 1e6},
                                  {"slowest_seed", s.slowest_seed}}
        .dump(2);
}

void print_failed_run(const sim::Report& report) {
    const std::string first = report.failures.empty() ? "not finished" : report.failures.front();
    fmt::print("seed {}: {}; replay: atp simulate --swarm 1 --seed {} --trace trace.txt\n", report.seed, first,
               report.seed);
    std::fflush(stdout);
}

int run_swarm(const Options& options) {
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
    if (options.json) {
        fmt::print("{}\n", summary_json(s, options));
    } else {
        fmt::print(
            "{} runs from seed {}: {} failed; {} fragments, {} packet-hops, {} packets lost, {} resends, "
            "{} incarnations; slowest seed {} after {:.1f} ms of virtual time; {:.1f} s\n",
            s.runs, options.scenario.seed, s.failures, s.fragments, s.packet_hops, s.lost, s.resends, s.incarnations,
            s.slowest_seed, static_cast<double>(s.slowest.count()) / 1e6, seconds_since(begin));
    }
    if (interrupted) return exit_interrupted;
    return s.failures == 0 ? exit_passed : exit_failed;
}

int run_simulate(const Options& options) {
    std::signal(SIGINT, interrupt);
    std::signal(SIGTERM, interrupt);
    if (options.swarm > 1) {
        if (!options.trace_path.empty()) {
            fmt::print(stderr, "atp simulate: --trace shows one run; use --swarm 1 --seed N\n");
            return exit_misused;
        }
        return run_swarm(options);
    }
    if (options.swarm == 0) return run_one(options.scenario, options, to_flags(options.scenario));
    const sim::Scenario drawn = sim::draw_scenario(options.scenario.seed);
    if (!options.json) fmt::print("seed {} draws: {}\n", drawn.seed, to_flags(drawn));
    return run_one(drawn, options, fmt::format("--swarm 1 --seed {}", drawn.seed));
}

}  // namespace

std::function<int()> register_simulate(CLI::App& program) {
    auto options = std::make_shared<Options>();
    CLI::App* command = program.add_subcommand(
        "simulate", "Run the shipped state machines in a simulated network; verify every sum bit by bit");
    add_scenario_flags(*command, options->scenario);
    Flags flags(*command, "What to run and show");
    flags.number("--seed", options->scenario.seed, 0, UINT64_MAX, "decides everything that chance decides");
    flags.number("--swarm", options->swarm, 1, 1'000'000'000,
                 "run that many scenarios drawn whole from the seeds --seed, --seed + 1, ...");
    flags.number("--threads", options->threads, 1, 1024, "of a swarm");
    flags.flag("--json", options->json, "one JSON object instead of tables");
    flags.text("--trace", options->trace_path, "FILE", "write one line for everything that happens to a packet");
    return [options] { return run_simulate(*options); };
}

}  // namespace atp::cli
