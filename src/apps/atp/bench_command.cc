// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/bench_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "apps/atp/bench_flags.h"
#include "apps/atp/bench_here.h"
#include "apps/atp/bench_rank.h"
#include "apps/common/child_processes.h"
#include "apps/common/command_text.h"
#include "apps/common/interruption.h"
#include "base/median.h"
#include "base/text.h"

namespace atp::apps {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::uint64_t, 9> usual_sizes{1'024,     4'096,     16'384,     65'536,    262'144,
                                                   1'048'576, 4'194'304, 16'777'216, 67'108'864};

int failed(const Error& error, const Interruption& interruption) {
    if (interruption.came()) return exit_interrupted;
    fmt::print(stderr, "atp bench: {}\n", to_string(error));
    return exit_failed;
}

std::string_view route_of_results(const BenchSize& size) {
    if (size.layout == "memory") return "memory";
    return size.results_by_group ? "multicast" : "unicast";
}

Json to_json(const BenchSize& size, const BenchRank& bench) {
    const double middle = median(size.seconds);
    Json json{{"bytes", size.bytes},
              {"rounds", size.seconds.size()},
              {"world", bench.world},
              {"type", to_string(bench.type)},
              {"collective", to_string(bench.collective)},
              {"protocol", bench.system},
              {"seconds", size.seconds},
              {"ranks_cpu_seconds", size.cpu_seconds},
              {"goodput_bps", static_cast<double>(size.bytes) * 8 / middle},
              {"latency_us", middle * 1e6},
              {"verified", true}};
    for (const auto& field : bench_fields) json[std::string(field.name)] = field.value_of(size.counters);
    json.update({{"results", route_of_results(size)},
                 {"formation_seconds", size.formation_seconds},
                 {"host_ranks", size.host_ranks},
                 {"layout", size.layout},
                 {"lanes", size.lanes},
                 {"window", size.window},
                 {"without", size.without}});
    return json;
}

// ------------------------------------------------------------------------------------------------------------ One rank

int run_rank(const BenchOptions& options) {
    if (options.bench.rank >= options.bench.world) {
        fmt::print(stderr, "atp bench: --rank {}: ranks of a world of {} count from 0 to {}\n", options.bench.rank,
                   options.bench.world, options.bench.world - 1);
        return exit_misused;
    }
    bool first = true;
    const auto show = [&](const BenchSize& size) {
        if (!options.json && std::exchange(first, false)) {
            for (const std::string& missing : size.without) fmt::print("without {}\n", missing);
            if (options.bench.options.multicast.requested) {
                const std::string_view route = route_of_results(size);
                fmt::print("results by {}{}\n", route,
                           route == "unicast" ? ": some rank does not receive the group" : "");
            }
            fmt::print("{:>12} {:>12} {:>14} {:>10}\n", "bytes", "time us", "goodput Mbit/s", "resent");
        }
        if (options.json) {
            fmt::print("{}\n", to_json(size, options.bench).dump());
        } else {
            const double middle = median(size.seconds);
            fmt::print("{:>12} {:>12.1f} {:>14.1f} {:>10}\n", size.bytes, middle * 1e6,
                       static_cast<double>(size.bytes) * 8 / middle / 1e6, size.counters.resent);
        }
        std::fflush(stdout);
    };
    Interruption interruption;
    const auto done = run_bench_rank(options.bench, interruption, show);
    if (!done) return failed(done.error(), interruption);
    return exit_passed;
}

// ----------------------------------------------------------------------------------------------------------- All ranks

void show_progress(std::uint32_t repeat, std::uint32_t repeats, std::string_view system) {
    if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\rround {} of {}: {}\033[K", repeat + 1, repeats, system);
}

void print_results(const BenchOptions& options, const BenchTimes& atp, const BenchTimes& peer,
                   const std::string& algorithm, const Json& last) {
    if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\033[K");
    if (!options.json) {
        const std::string places = options.hosts != 0
                                       ? fmt::format("on {} of this one", counted(options.hosts, "emulated host"))
                                   : options.sends_packets() ? "on this host, which send packets"
                                                             : "in the memory of this host";
        fmt::print("{} {}, {}, {} of {}, {}{}; every bit of every result verified\n",
                   counted(options.workers, "worker"), places, options.bench.system,
                   to_string(options.bench.collective), to_string(options.bench.type),
                   counted(atp.begin()->second.size(), "round"),
                   peer.empty() ? "" : fmt::format(", alternating with Gloo ({})", algorithm));
        for (const Json& missing : last.begin()->value("without", Json::array())) {
            fmt::print("without {}\n", missing.get<std::string>());
        }
        fmt::print("{:>12} {:>12} {:>16}{}\n", "bytes", "time us", "goodput Mbit/s",
                   peer.empty() ? "" : fmt::format(" {:>12} {:>16} {:>8}", "Gloo us", "Gloo Mbit/s", "ratio"));
    }
    for (const auto& [bytes, seconds] : atp) {
        const double middle = median(seconds);
        const double goodput = static_cast<double>(bytes) * 8 / middle;
        const auto other = peer.find(bytes);
        const double peer_middle = other == peer.end() ? 0 : median(other->second);
        if (options.json) {
            Json line = last.value(std::to_string(bytes), Json::object());
            line["rounds"] = seconds.size();
            line["seconds"] = seconds;
            line["goodput_bps"] = goodput;
            line["latency_us"] = middle * 1e6;
            const std::string& system = options.bench.system;
            line["systems"][system] = {{"goodput_bps", goodput}, {"latency_us", middle * 1e6}, {"seconds", seconds}};
            if (peer_middle > 0) {
                const double peer_goodput = static_cast<double>(bytes) * 8 / peer_middle;
                line["peer_latency_us"] = peer_middle * 1e6;
                line["systems"][system]["ratio_to_" + options.peer] = peer_middle / middle;
                line["systems"][options.peer] = {{"goodput_bps", peer_goodput},
                                                 {"latency_us", peer_middle * 1e6},
                                                 {"algorithm", algorithm},
                                                 {"seconds", other->second}};
            }
            fmt::print("{}\n", line.dump());
            continue;
        }
        fmt::print("{:>12} {:>12.1f} {:>16.1f}", bytes, middle * 1e6, goodput / 1e6);
        if (peer_middle > 0) {
            fmt::print(" {:>12.1f} {:>16.1f} {:>8.2f}", peer_middle * 1e6,
                       static_cast<double>(bytes) * 8 / peer_middle / 1e6, peer_middle / middle);
        }
        fmt::print("\n");
    }
}

// Selects the fastest of Gloo's algorithms on this host, by one repetition of each.
Result<std::string> fastest_algorithm(BenchHere& here, const BenchOptions& options) {
    if (options.peer_algorithm != "best") return options.peer_algorithm;
    std::string fastest;
    double least = 0;
    for (const std::string_view algorithm : gloo_algorithms) {
        BenchTimes times;
        if (auto done = here.run_gloo(times, std::string(algorithm)); !done) return tl::unexpected(done.error());
        double sum = 0;
        for (const auto& [bytes, seconds] : times) sum += std::log(median(seconds));
        if (fastest.empty() || sum < least) {
            fastest = algorithm;
            least = sum;
        }
    }
    return fastest;
}

int run_all_here(const BenchOptions& options) {
    const Interruption interruption;
    BenchHere here(options, interruption);
    if (auto started = here.start_switch(); !started) return failed(started.error(), interruption);
    const bool with_peer = !options.peer.empty();
    const std::uint32_t repeats = options.repeats != 0 ? options.repeats : with_peer ? 5 : 1;
    std::string algorithm;
    if (with_peer) {
        if (!std::filesystem::exists(program_beside("bench_gloo"))) {
            fmt::print(stderr, "atp bench: --peer gloo needs {}: install libgloo-dev and build the target bench_gloo\n",
                       program_beside("bench_gloo"));
            return exit_misused;
        }
        const auto fastest = fastest_algorithm(here, options);
        if (!fastest) return failed(fastest.error(), interruption);
        algorithm = *fastest;
    }
    BenchTimes atp;
    BenchTimes peer;
    Json last = Json::object();
    for (std::uint32_t repeat = 0; repeat < repeats; ++repeat) {
        show_progress(repeat, repeats, options.bench.system);
        if (auto done = here.run_atp(atp, last); !done) return failed(done.error(), interruption);
        if (!with_peer) continue;
        show_progress(repeat, repeats, "gloo");
        if (auto done = here.run_gloo(peer, algorithm); !done) return failed(done.error(), interruption);
    }
    print_results(options, atp, peer, algorithm, last);
    return exit_passed;
}

// Measures the gain of each socket feature, added one after the other (fig. 19 of the paper, for sockets).
int run_ladder(const BenchOptions& options) {
    struct Rung {
        const char* name;
        bool mmsg, gso, gro;
        std::uint32_t threads;
    };
    constexpr std::array<Rung, 5> rungs{{{"plain", false, false, false, 1},
                                         {"+mmsg", true, false, false, 1},
                                         {"+gso", true, true, false, 1},
                                         {"+gro", true, true, true, 1},
                                         {"+threads", true, true, true, 2}}};
    const Interruption interruption;
    std::array<BenchTimes, rungs.size()> times;
    const std::uint32_t repeats = options.repeats != 0 ? options.repeats : 5;
    for (std::uint32_t repeat = 0; repeat < repeats; ++repeat) {
        for (std::size_t i = 0; i < rungs.size(); ++i) {
            show_progress(repeat, repeats, rungs[i].name);
            BenchOptions own = options;
            own.bench.options.mmsg = rungs[i].mmsg;
            own.bench.options.gso = rungs[i].gso;
            own.bench.options.gro = rungs[i].gro;
            own.bench.options.channels = own.switch_threads = rungs[i].threads;
            BenchHere here(own, interruption);
            Json last = Json::object();
            if (auto started = here.start_switch(); !started) return failed(started.error(), interruption);
            if (auto done = here.run_atp(times[i], last); !done) return failed(done.error(), interruption);
        }
    }
    if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\033[K");
    for (const auto& [bytes, plain] : times.front()) {
        double before = median(plain);
        if (!options.json) {
            fmt::print("{} bytes, {}, {}\n", bytes, counted(options.workers, "worker"), counted(plain.size(), "round"));
        }
        for (std::size_t i = 0; i < rungs.size(); ++i) {
            const double middle = median(times[i].at(bytes));
            const double goodput = static_cast<double>(bytes) * 8 / middle;
            if (options.json) {
                fmt::print("{}\n", Json{{"bytes", bytes},
                                        {"way", rungs[i].name},
                                        {"goodput_bps", goodput},
                                        {"times_plain", median(plain) / middle},
                                        {"times_before", before / middle}}
                                       .dump());
            } else {
                fmt::print("  {:<9} {:>10.1f} Mbit/s   {:>5.2f} x plain   {:>5.2f} x the row above\n", rungs[i].name,
                           goodput / 1e6, median(plain) / middle, before / middle);
            }
            before = middle;
        }
    }
    return exit_passed;
}

// Why the magnitude does not suit the other flags; empty if it does.
std::string why_not(const BenchRank& bench) {
    if (bench.magnitude == 0) return {};
    if (numeric::is_integer(bench.type)) return fmt::format("{} has no magnitude", to_string(bench.type));
    if (bench.options.scaling != tensor::Scaling::dynamic) return "needs --scaling dynamic";
    const bool fits = bench.magnitude >= smallest_half_magnitude && bench.magnitude <= largest_half_magnitude;
    if (bench.type != numeric::ElementType::float16 || fits) return {};
    return fmt::format("float16 holds all bits of these values between {} and {}", smallest_half_magnitude,
                       largest_half_magnitude);
}

int run_bench(BenchOptions options) {
    if (options.bench.sizes.empty()) options.bench.sizes.assign(usual_sizes.begin(), usual_sizes.end());
    const std::size_t width = numeric::bytes_of(options.bench.type);
    for (std::uint64_t& bytes : options.bench.sizes) {
        bytes -= bytes % width;
        if (bytes == 0) {
            fmt::print(stderr, "atp bench: --bytes: a {} has {} bytes; use at least that many\n",
                       to_string(options.bench.type), width);
            return exit_misused;
        }
    }
    if (const std::string reason = why_not(options.bench); !reason.empty()) {
        fmt::print(stderr, "atp bench: --magnitude: {}\n", reason);
        return exit_misused;
    }
    options.bench.serves_store = !options.store_elsewhere;
    comm::Options& comm = options.bench.options;
    if (!comm.dedicated_servers.empty()) comm.server = comm::ServerPlace::dedicated;
    if (comm.server == comm::ServerPlace::dedicated && comm.dedicated_servers.empty()) {
        fmt::print(stderr, "atp bench: --server dedicated needs an address: add --dedicated-server ADDRESS\n");
        return exit_misused;
    }
    if (options.additions.complete) options.additions.complete(options.bench);
    if (options.single) return run_rank(options);
    options.bench.world = options.workers;
    if (!options.packet_flag.empty() && !options.sends_packets()) {
        fmt::print(stderr, "atp bench: {}: ranks of one host send no packets: add --network\n", options.packet_flag);
        return exit_misused;
    }
    if (options.ladder) return run_ladder(options);
    return run_all_here(options);
}

}  // namespace

std::function<int()> add_bench(CLI::App& program, BenchAdditions additions) {
    auto options = std::make_shared<BenchOptions>();
    options->additions = std::move(additions);
    Command& command = Command::add(
        program, "bench", "Measure collectives on this host, or as one rank of many hosts, and verify every result");
    add_bench_flags(command, options);
    const std::string typed = program.get_name() + " bench";
    command.add_example(typed + " --workers 4 --network --bytes 25MB", "Four ranks on this host, and a switch.");
    command.add_example(typed + " --rank 0 --world 2 --rendezvous 10.0.0.2:29500 --switch 10.0.0.1:4790",
                        "Rank 0 of two; start rank 1 on its host in the same way.");
    command.set_exit({{exit_passed, "measured and every result right"},
                      {exit_failed, "an operation failed, or a result is wrong"},
                      {exit_misused, "bad arguments"},
                      {exit_interrupted, "after Ctrl-C"}});
    return [options] { return run_bench(*options); };
}

std::function<int()> register_bench(CLI::App& program) { return add_bench(program); }

}  // namespace atp::apps
