// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/bench_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/atp/option_flags.h"
#include "apps/common/flags.h"
#include "base/units.h"

namespace atp::apps {
namespace {

constexpr std::uint32_t most_ranks = ATP_BITMAP_BITS * ATP_BITMAP_BITS;
constexpr std::uint32_t most_ranks_of_host = ATP_PART_RANK_MASK;

template <class Values>
std::string names_of(const Values& values) {
    std::vector<std::string_view> names;
    for (const auto value : values) names.push_back(to_string(value));
    return fmt::format("{}", fmt::join(names, ", "));
}

std::optional<double> parse_magnitude(std::string_view text) {
    const auto value = parse_real(text, 0, std::numeric_limits<float>::max());
    return value && *value > 0 ? value : std::nullopt;
}

std::optional<std::string> parse_peer(std::string_view text) {
    return text == "gloo" ? std::optional<std::string>(text) : std::nullopt;
}

std::optional<std::string> parse_algorithm(std::string_view text) {
    const bool known = text == "best" || std::ranges::find(gloo_algorithms, text) != gloo_algorithms.end();
    return known ? std::optional<std::string>(text) : std::nullopt;
}

void add_what(Command& command, const std::shared_ptr<BenchOptions>& options) {
    BenchRank& bench = options->bench;
    const std::string types = names_of(numeric::element_types);
    const std::string names = names_of(collectives);
    Flags what(command, "Measurement");
    what.appended("--bytes", bench.sizes, "SIZE", parse_size, size_forms,
                  "Size of the tensor [nine sizes from 1kB to 67MB]");
    what.number("--rounds", bench.rounds, 1, 1'000'000, "Measured operations per size [20]");
    what.number("--warmup", bench.warmup, 0, 1'000'000, "Operations per size before the measured ones [3]");
    what.parsed("--type", bench.type, "TYPE", numeric::parse_element_type, types, "Type of the elements [float32]");
    what.parsed("--collective", bench.collective, "NAME", parse_collective, names,
                "Operation; both: a reduce-scatter and an all-gather at once [all_reduce]");
    what.parsed("--magnitude", bench.magnitude, "X", parse_magnitude, "a number above 0, such as 1e-9",
                "Approximate magnitude of the test values; floats with dynamic scaling only [0.13]");
    what.flag("--network", options->network, "Send packets between all ranks, also between those of one host");
    what.flag("--json", options->json, "Print one JSON object per size");
}

// A process runs one rank of many, or all ranks on this host: the flags of the two cases exclude each other.
void add_where(Command& command, const std::shared_ptr<BenchOptions>& options) {
    BenchRank& bench = options->bench;
    comm::Options& comm = bench.options;
    Flags rank(command, "One rank of many");
    CLI::Option* const single =
        rank.number("--rank", bench.rank, 0, most_ranks - 1,
                    "Rank of this process; needs --world and --rendezvous. Ranks of one host sum in its memory; "
                    "others need --switch or --listen")
            ->each([options](const std::string&) { options->single = true; });
    CLI::Option* const at_switch = add_option_flag(rank, "--switch", comm);
    CLI::Option* const world = rank.number("--world", bench.world, 1, most_ranks, "Number of ranks");
    CLI::Option* const rendezvous = rank.text("--rendezvous", bench.rendezvous, "ADDRESS", address_forms,
                                              "Address at which rank 0 serves the store");
    single->needs(world)->needs(rendezvous);
    world->needs(single);
    rendezvous->needs(single);
    add_option_flag(rank, "--rack", comm)->needs(single);
    add_option_flag(rank, "--listen", comm)->needs(single);
    add_option_flag(rank, "--link-rate", comm)->needs(single);
    add_option_flag(rank, "--uplink", comm)->needs(single);
    add_option_flag(rank, "--uplink-rate", comm)->needs(single);
    rank.flag("--store-elsewhere", options->store_elsewhere, "Let another process serve the store")->needs(single);
    Flags here(command, "All ranks on this host (the default)");
    CLI::Option* const workers =
        here.number("--workers", options->workers, 1, ATP_BITMAP_BITS,
                    "Number of ranks, one process each; they sum in memory, or with --network at one switch [4]")
            ->excludes(single);
    CLI::Option* const hosts =
        here.number("--hosts", options->hosts, 1, ATP_BITMAP_BITS,
                    "Pretend the ranks run on N hosts of --ranks-per-host each (instead of --workers)")
            ->excludes(single)
            ->excludes(workers)
            ->excludes(command.get_option("--network"));
    CLI::Option* const ranks_per_host = here.number("--ranks-per-host", options->ranks_per_host, 1, most_ranks_of_host,
                                                    "Ranks of each host: they sum in memory, and one of them sends [1]")
                                            ->needs(hosts);
    hosts->needs(ranks_per_host);
    here.parsed("--memory", options->memory, "SIZE", parse_size, size_forms, "Memory of the started switch [64MB]")
        ->excludes(single)
        ->excludes(at_switch);
    CLI::Option* const peer = here.parsed("--peer", options->peer, "PEER", parse_peer, "gloo",
                                          "Measure this library as well, alternating with ATP [none]")
                                  ->excludes(single)
                                  ->excludes(command.get_option("--collective"))
                                  ->excludes(command.get_option("--magnitude"));
    here.parsed("--peer-algorithm", options->peer_algorithm, "NAME", parse_algorithm,
                fmt::format("best, {}", fmt::join(gloo_algorithms, ", ")), "Algorithm of Gloo [best]")
        ->needs(peer);
    here.flag("--ladder", options->ladder,
              "Measure the gain of mmsg, gso, gro and threads, each added to the ones before")
        ->excludes(single)
        ->excludes(peer);
    here.number("--switch-threads", options->switch_threads, 1, 256, "Threads of the started switch [1]")
        ->excludes(single)
        ->excludes(at_switch);
    here.number("--repeats", options->repeats, 1, 1000,
                "Repetitions of the whole measurement, alternating with --peer [5 with --peer or --ladder, else 1]")
        ->excludes(single);
}

// The first flag given that only packets obey; empty: none.
std::string packet_flag(const CLI::App& command) {
    constexpr std::array<std::string_view, 12> flags{"--switch", "--memory",           "--switch-threads", "--ladder",
                                                     "--trace",  "--window",           "--channels",       "--audit",
                                                     "--server", "--dedicated-server", "--multicast",      "--without"};
    for (const std::string_view flag : flags) {
        if (command.count(std::string(flag)) != 0) return std::string(flag);
    }
    return {};
}

}  // namespace

void add_bench_flags(Command& command, const std::shared_ptr<BenchOptions>& options) {
    add_what(command, options);
    add_where(command, options);
    Flags how(command, "Options of the ranks");
    add_option_flags(how, options->bench.options,
                     {"--switch", "--rack", "--listen", "--link-rate", "--uplink", "--uplink-rate"});
    if (options->additions.add_flags) options->additions.add_flags(command);
    command.parse_complete_callback([options, &command] {
        comm::Options& comm = options->bench.options;
        comm.host_level = !options->network;
        if (options->hosts != 0) options->workers = options->hosts * options->ranks_per_host;
        if (options->single && options->network && comm.switch_address.empty() && comm.listen.empty()) {
            throw CLI::RequiredError("--rank with --network needs --switch or --listen:");
        }
        options->packet_flag = packet_flag(command);
    });
}

}  // namespace atp::apps
