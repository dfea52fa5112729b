// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/bench_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>
#include <utility>

#include "apps/common/flags.h"
#include "apps/common/value_texts.h"

namespace atp::apps {
namespace {

constexpr std::uint32_t most_ranks = ATP_BITMAP_BITS * ATP_BITMAP_BITS;

std::optional<BenchWithout> parse_without(std::string_view text) {
    BenchWithout without;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(','), text.size());
        const std::string_view name = text.substr(0, end);
        if (name == "mmsg") {
            without.mmsg = true;
        } else if (name == "gso") {
            without.gso = true;
        } else if (name == "gro") {
            without.gro = true;
        } else {
            return std::nullopt;
        }
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return without;
}

std::optional<BenchLanes> parse_lanes(std::string_view text) {
    BenchLanes lanes;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), lanes.count);
    if (error == std::errc()) {
        if (lanes.count < 2 || lanes.count > ATP_MAX_LANES) return std::nullopt;
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
        if (text.empty()) return lanes;
        if (!text.starts_with(':')) return std::nullopt;
        text.remove_prefix(1);
    }
    const auto type = tensor::parse_lane_type(text);
    if (!type) return std::nullopt;
    lanes.type = *type;
    return lanes;
}

std::optional<numeric::ElementType> parse_bench_type(std::string_view text) {
    const auto type = numeric::parse_element_type(text);
    if (type == numeric::ElementType::float16 || type == numeric::ElementType::bfloat16) return std::nullopt;
    return type;
}

std::optional<std::uint32_t> parse_window_packets(std::string_view text) {
    const auto packets = parse_size(text);
    if (!packets || !std::has_single_bit(*packets) || *packets > 1U << ATP_WINDOW_LOG2_MAX) return std::nullopt;
    return static_cast<std::uint32_t>(*packets);
}

std::optional<std::string> parse_peer(std::string_view text) {
    return text == "gloo" ? std::optional<std::string>(text) : std::nullopt;
}

std::optional<std::string> parse_algorithm(std::string_view text) {
    const bool known = text == "best" || std::ranges::find(gloo_algorithms, text) != gloo_algorithms.end();
    return known ? std::optional<std::string>(text) : std::nullopt;
}

std::optional<comm::ServerPlace> parse_place(std::string_view text) {
    if (text == "switch") return comm::ServerPlace::on_switch;
    if (text == "colocated") return comm::ServerPlace::colocated;
    return std::nullopt;
}

void add_what(CLI::App& command, const std::shared_ptr<BenchOptions>& options) {
    BenchRank& bench = options->bench;
    Flags what(command, "What to measure");
    what.appended("--bytes", bench.sizes, "SIZE", parse_size, size_forms,
                  "of the tensor; may be repeated [1kB to 67MB]");
    what.number("--rounds", bench.rounds, 1, 1'000'000, "measured operations of each size [20]");
    what.number("--warmup", bench.warmup, 0, 1'000'000, "operations before those [3]");
    what.parsed("--type", bench.type, "TYPE", parse_bench_type, "float32, float64, int32 or int64",
                "of the elements [float32]");
    what.flag("--json", options->json, "a JSON object for each size");
}

// One rank of many, or all ranks on this host: the flags of the two exclude each other.
void add_where(CLI::App& command, const std::shared_ptr<BenchOptions>& options) {
    BenchRank& bench = options->bench;
    comm::Options& comm = bench.options;
    Flags rank(command, "One rank of many");
    CLI::Option* const single =
        rank.number("--rank", bench.rank, 0, most_ranks - 1, "of this process; needs the next three")
            ->each([options](const std::string&) { options->single = true; });
    CLI::Option* const at_switch =
        rank.text("--switch", comm.switch_address, "ADDRESS", "of the switch of this rank, host:port");
    CLI::Option* const world = rank.number("--world", bench.world, 1, most_ranks, "how many ranks there are");
    CLI::Option* const rendezvous =
        rank.text("--rendezvous", bench.rendezvous, "ADDRESS", "host:port where rank 0 serves the store");
    single->needs(world)->needs(rendezvous)->needs(at_switch);
    world->needs(single);
    rendezvous->needs(single);
    rank.text("--rack", comm.rack, "NAME",
              "where this rank is: switches in the path aggregate each rack, and then racks, and nobody names them "
              "[none]")
        ->needs(single);
    rank.flag("--store-elsewhere", options->store_elsewhere, "another process serves the store")->needs(single);
    Flags here(command, "All ranks on this machine (the default)");
    here.number("--workers", options->workers, 1, ATP_BITMAP_BITS, "processes, under one switch [4]")->excludes(single);
    here.parsed("--memory", options->memory, "SIZE", parse_size, size_forms, "of the switch that is started [64MB]")
        ->excludes(single)
        ->excludes(at_switch);
    CLI::Option* const peer =
        here.parsed("--peer", options->peer, "PEER", parse_peer, "gloo", "run it beside, in turns")->excludes(single);
    here.parsed("--peer-algorithm", options->peer_algorithm, "NAME", parse_algorithm,
                fmt::format("best, {}", fmt::join(gloo_algorithms, ", ")), "of Gloo [best]")
        ->needs(peer);
    here.flag("--ladder", options->ladder, "what mmsg, gso, gro and threads bring, one added to the other")
        ->excludes(single)
        ->excludes(peer);
    here.number("--switch-threads", options->switch_threads, 1, 256, "of the switch that is started [1]")
        ->excludes(single)
        ->excludes(at_switch);
    here.number("--repeats", options->repeats, 1, 1000, "of everything, in turns with the peer [5 with one, else 1]")
        ->excludes(single);
}

void add_how(CLI::App& command, const std::shared_ptr<BenchOptions>& options) {
    comm::Options& comm = options->bench.options;
    Flags how(command, "How");
    how.number("--channels", comm.channels, 1, 64, "independent streams, a thread each [1]");
    how.parsed("--lanes", options->lanes, "N|TYPE|N:TYPE", parse_lanes,
               fmt::format("a number from 2 to {}, int32 or int16, or both with a colon between", ATP_MAX_LANES),
               "of a packet, and what carries a number [what the way to the switch carries, int32]");
    how.parsed("--scaling", comm.scaling, "HOW", tensor::parse_scaling, "fixed or dynamic",
               "at the job's scale, or at one that fits the last sum [fixed]");
    how.parsed("--window", comm.window, "N", parse_window_packets, "a power of two up to 65536",
               "packets under way at most [by their size]");
    how.parsed("--server", comm.server, "PLACE", parse_place, "switch or colocated", "where servers stand [switch]");
    how.appended(
        "--dedicated-server", comm.dedicated_servers, "ADDRESS",
        [](std::string_view text) { return text.empty() ? std::nullopt : std::optional<std::string>(text); },
        "host:port", "where servers stand that are on hosts of their own; may be repeated");
    how.parsed("--multicast", comm.multicast, "on|GROUPS", control::parse_multicast,
               "on, off, or groups of IPv4 as 239.192.0.0/16",
               "send results once, to a group, where every rank hears it [off]");
    how.flag("--audit", comm.audit, "prove each sum with four bytes a packet");
    how.parsed("--spin", comm.spin, "TIME", parse_duration, duration_forms, "poll before sleeping [0]");
    how.parsed("--without", options->without, "LIST", parse_without, "mmsg, gso, gro, with commas between them",
               "ways of sending and receiving to do without");
    how.parsed("--timeout", comm.join_timeout, "TIME", parse_wait, wait_forms, "to find the others [30s]");
    how.parsed("--deadline", comm.timeout, "TIME", parse_wait, wait_forms, "of each operation [300s]");
}

}  // namespace

std::string lanes_text(const comm::Options& options) {
    const std::string_view type = to_string(options.lane_type);
    return options.lanes == 0 ? std::string(type) : fmt::format("{}:{}", options.lanes, type);
}

void add_bench_flags(CLI::App& command, const std::shared_ptr<BenchOptions>& options) {
    add_what(command, options);
    add_where(command, options);
    add_how(command, options);
    if (options->additions.add_flags) options->additions.add_flags(command);
}

}  // namespace atp::apps
