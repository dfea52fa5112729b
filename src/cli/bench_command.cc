// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "cli/bench_fleet.h"
#include "cli/bench_rank.h"
#include "cli/flags.h"
#include "cli/units.h"
#include "comm/tcp_store_server.h"
#include "net/clock.h"
#include "net/switch_node.h"

namespace atp::cli {
namespace {

using Json = nlohmann::ordered_json;

// Which of mmsg, gso and gro are to be left out.
struct Without {
    bool mmsg = false, gso = false, gro = false;
};
std::optional<Without> parse_without(std::string_view text) {
    Without without;
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

constexpr std::array<std::pair<std::string_view, wire::ChannelProtocol>, 3> switchml_modes{
    {{"offsets", wire::ChannelProtocol::switchml},
     {"faithful", wire::ChannelProtocol::switchml_faithful},
     {"lossless", wire::ChannelProtocol::switchml_lossless}}};

std::optional<wire::ChannelProtocol> parse_switchml_mode(std::string_view text) {
    for (const auto& [name, mode] : switchml_modes) {
        if (name == text) return mode;
    }
    return std::nullopt;
}
std::string mode_text(wire::ChannelProtocol mode) {
    for (const auto& [name, known] : switchml_modes) {
        if (known == mode) return std::string(name);
    }
    return {};
}

struct Options {
    BenchRank bench;
    bool switchml = false;
    wire::ChannelProtocol switchml_mode = wire::ChannelProtocol::switchml;
    bool single = false;  // this process is one rank
    std::uint32_t workers = 4;
    std::uint32_t repeats = 0;  // 0: 5 beside a peer, else 1
    std::uint64_t memory = 64'000'000;
    std::string peer;
    std::string peer_algorithm = "best";
    bool json = false;
    bool store_elsewhere = false;
    bool ladder = false;
    Without without;
    std::uint32_t switch_threads = 1;
    protocol::Duration timeout = std::chrono::minutes(10);
};

constexpr std::uint32_t most_ranks = ATP_BITMAP_BITS * ATP_BITMAP_BITS;

constexpr std::array<std::string_view, 4> gloo_algorithms{"ring", "ring_chunked", "halving_doubling", "bcube"};

constexpr std::array<std::uint64_t, 9> usual_sizes{1'024,     4'096,     16'384,     65'536,    262'144,
                                                   1'048'576, 4'194'304, 16'777'216, 67'108'864};

double median(std::vector<double> values) {
    std::ranges::sort(values);
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

int failed(const net::Error& error) {
    if (error.operation == net::Operation::wait && error.reason == net::Reason::closed) return exit_interrupted;
    fmt::print(stderr, "atp bench: {}\n", net::to_string(error));
    return exit_failed;
}

Json to_json(const BenchSize& size, const BenchRank& bench) {
    const double middle = median(size.seconds);
    return {{"bytes", size.bytes},
            {"rounds", size.seconds.size()},
            {"world", bench.world},
            {"type", comm::to_string(bench.type)},
            {"protocol", wire::to_string(bench.options.protocol)},
            {"seconds", size.seconds},
            {"goodput_bps", static_cast<double>(size.bytes) * 8 / middle},
            {"latency_us", middle * 1e6},
            {"verified", true},
            {"packets", size.counters.packets},
            {"resent", size.counters.resent},
            {"resent_newer", size.counters.resent_newer},
            {"probes", size.counters.probes},
            {"stale_acks", size.counters.stale_acks},
            {"halvings", size.counters.halvings},
            {"dropped_by_kernel", size.counters.dropped_by_kernel},
            {"lanes", size.lanes},
            {"window", size.window},
            {"without", size.without}};
}

// ------------------------------------------------------------------------------------------------------------ One rank

int run_rank(const Options& options) {
    if (options.bench.rank >= options.bench.world) {
        fmt::print(stderr, "atp bench: rank {} of {}: ranks begin with 0\n", options.bench.rank, options.bench.world);
        return exit_misused;
    }
    bool first = true;
    const auto show = [&](const BenchSize& size) {
        if (!options.json && std::exchange(first, false)) {
            for (const std::string& missing : size.without) fmt::print("without {}\n", missing);
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
    const auto done = run_bench_rank(options.bench, show);
    if (!done) return failed(done.error());
    return exit_passed;
}

// ----------------------------------------------------------------------------------------------------------- All ranks

// By size: the seconds of every round of every repetition.
using Times = std::map<std::uint64_t, std::vector<double>>;

// As --without takes it.
std::string without_text(const comm::Options& options) {
    std::string text;
    for (const auto& [name, used] : {std::pair("mmsg", options.mmsg), {"gso", options.gso}, {"gro", options.gro}}) {
        if (!used) text += (text.empty() ? "" : ",") + std::string(name);
    }
    return text;
}

class AllHere {
  public:
    AllHere(const Options& options, const StopSignals& signals) : options_(options), signals_(signals) {}

    net::Result<void> start_switch() {
        if (!options_.bench.options.switch_address.empty()) {
            switch_address_ = options_.bench.options.switch_address;
            return {};
        }
        net::SwitchNodeConfig config;
        config.udp.local = net::Address::loopback(net::Family::ipv4, 0);
        config.udp.mmsg = options_.bench.options.mmsg;
        config.udp.gso = options_.bench.options.gso;
        config.udp.gro = options_.bench.options.gro;
        config.shards = options_.switch_threads;
        config.serves_atp = !wire::is_switchml(options_.bench.options.protocol);
        config.memory_bytes = config.serves_atp ? options_.memory : 0;
        config.pool_bytes = config.serves_atp ? 0 : options_.memory;
        config.lanes = static_cast<std::uint16_t>(options_.bench.options.lanes != 0 ? options_.bench.options.lanes
                                                                                    : loopback_lanes);
        auto node = net::SwitchNode::start(config);
        if (!node) return tl::unexpected(node.error());
        node_ = *std::move(node);
        switch_address_ = to_string(node_->address());
        return {};
    }

    net::Result<void> run_atp(Times& times, Json& last) {
        auto store = comm::TcpStoreServer::start(net::Address::loopback(net::Family::ipv4, 0));
        if (!store) return tl::unexpected(store.error());
        std::vector<std::vector<std::string>> commands;
        for (std::uint32_t rank = 0; rank < options_.workers; ++rank) {
            commands.push_back(rank_command(rank, to_string((*store)->local())));
        }
        const auto text = run_fleet(commands, signals_, net::now() + options_.timeout);
        if (!text) return tl::unexpected(text.error());
        return read(*text, times, last);
    }

    net::Result<void> run_gloo(Times& times, const std::string& algorithm) {
        Json ignored;
        for (const std::uint64_t bytes : options_.bench.sizes) {
            const std::filesystem::path folder = make_folder();
            std::vector<std::vector<std::string>> commands;
            for (std::uint32_t rank = 0; rank < options_.workers; ++rank) {
                commands.push_back({program_beside("bench_gloo"), "--rank", std::to_string(rank), "--world",
                                    std::to_string(options_.workers), "--store", folder.string(), "--address",
                                    "127.0.0.1", "--bytes", std::to_string(bytes), "--rounds",
                                    std::to_string(options_.bench.rounds), "--warmup",
                                    std::to_string(options_.bench.warmup), "--algorithm", algorithm, "--json"});
            }
            const auto text = run_fleet(commands, signals_, net::now() + options_.timeout);
            std::filesystem::remove_all(folder);
            if (!text) return tl::unexpected(text.error());
            if (auto done = read(*text, times, ignored); !done) return done;
        }
        return {};
    }

  private:
    static constexpr std::uint32_t loopback_lanes = 16'352;

    static std::filesystem::path make_folder() {
        std::string name = (std::filesystem::temp_directory_path() / "atp-bench-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder can be made in " + name);
        return name;
    }

    [[nodiscard]] std::vector<std::string> rank_command(std::uint32_t rank, const std::string& store) const {
        const BenchRank& bench = options_.bench;
        const comm::Options& comm = bench.options;
        std::vector<std::string> command{own_program(),
                                         "bench",
                                         "--rank",
                                         std::to_string(rank),
                                         "--world",
                                         std::to_string(options_.workers),
                                         "--rendezvous",
                                         store,
                                         "--store-elsewhere",
                                         "--switch",
                                         switch_address_,
                                         "--rounds",
                                         std::to_string(bench.rounds),
                                         "--warmup",
                                         std::to_string(bench.warmup),
                                         "--type",
                                         std::string(comm::to_string(bench.type)),
                                         "--channels",
                                         std::to_string(comm.channels),
                                         "--json"};
        for (const std::uint64_t bytes : bench.sizes) {
            command.insert(command.end(), {"--bytes", std::to_string(bytes)});
        }
        if (options_.switchml) {
            command.insert(command.end(), {"--protocol", "switchml", "--switchml-mode", mode_text(comm.protocol),
                                           "--switchml-timeout", duration_text(comm.resend_after)});
        }
        if (comm.lanes != 0) command.insert(command.end(), {"--lanes", std::to_string(comm.lanes)});
        if (comm.window != 0) command.insert(command.end(), {"--window", std::to_string(comm.window)});
        command.insert(command.end(), {"--timeout", duration_text(comm.join_timeout)});
        command.insert(command.end(), {"--deadline", duration_text(comm.timeout)});
        if (const std::string without = without_text(comm); !without.empty()) {
            command.insert(command.end(), {"--without", without});
        }
        if (comm.audit) command.emplace_back("--audit");
        if (!comm.halve) command.emplace_back("--no-halving");
        if (comm.server == comm::ServerPlace::colocated) command.insert(command.end(), {"--server", "colocated"});
        for (const std::string& server : comm.dedicated_servers) {
            command.insert(command.end(), {"--dedicated-server", server});
        }
        if (comm.spin != protocol::Duration::zero())
            command.insert(command.end(), {"--spin", duration_text(comm.spin)});
        return command;
    }

    static net::Result<void> read(const std::string& text, Times& times, Json& last) {
        std::size_t begin = 0;
        while (begin < text.size()) {
            const std::size_t end = std::min(text.find('\n', begin), text.size());
            const Json line = Json::parse(text.substr(begin, end - begin), nullptr, false);
            if (line.is_discarded() || !line.contains("seconds")) {
                return net::fail(net::Operation::parse, net::Reason::malformed, "rank 0", text);
            }
            last[std::to_string(line["bytes"].get<std::uint64_t>())] = line;
            for (const Json& seconds : line["seconds"]) {
                times[line["bytes"].get<std::uint64_t>()].push_back(seconds.get<double>());
            }
            begin = end + 1;
        }
        return {};
    }

    const Options& options_;
    const StopSignals& signals_;
    std::unique_ptr<net::SwitchNode> node_;
    std::string switch_address_;
};

void show_progress(std::uint32_t repeat, std::uint32_t repeats, std::string_view system) {
    if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\rround {} of {}: {}\033[K", repeat + 1, repeats, system);
}

void print_results(const Options& options, const Times& atp, const Times& peer, const std::string& algorithm,
                   const Json& last) {
    if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\033[K");
    if (!options.json) {
        fmt::print("{} workers on this machine, {}, {}, {} rounds{}; every result verified to the last bit\n",
                   options.workers, wire::to_string(options.bench.options.protocol),
                   comm::to_string(options.bench.type), atp.begin()->second.size(),
                   peer.empty() ? "" : fmt::format(", Gloo ({}) in turns", algorithm));
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
            const std::string system(wire::to_string(options.bench.options.protocol));
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

// Which of Gloo's algorithms suits this machine: one repetition of each decides.
net::Result<std::string> fastest_algorithm(AllHere& here, const Options& options) {
    if (options.peer_algorithm != "best") return options.peer_algorithm;
    std::string fastest;
    double least = 0;
    for (const std::string_view algorithm : gloo_algorithms) {
        Times times;
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

int run_all_here(const Options& options) {
    const StopSignals signals;
    AllHere here(options, signals);
    if (auto started = here.start_switch(); !started) return failed(started.error());
    const bool with_peer = !options.peer.empty();
    const std::uint32_t repeats = options.repeats != 0 ? options.repeats : with_peer ? 5 : 1;
    std::string algorithm;
    if (with_peer) {
        if (!std::filesystem::exists(program_beside("bench_gloo"))) {
            fmt::print(stderr,
                       "atp bench: --peer gloo needs {}, which the build target bench_gloo makes where libgloo-dev is "
                       "installed\n",
                       program_beside("bench_gloo"));
            return exit_misused;
        }
        const auto fastest = fastest_algorithm(here, options);
        if (!fastest) return failed(fastest.error());
        algorithm = *fastest;
    }
    Times atp;
    Times peer;
    Json last = Json::object();
    for (std::uint32_t repeat = 0; repeat < repeats; ++repeat) {
        show_progress(repeat, repeats, wire::to_string(options.bench.options.protocol));
        if (auto done = here.run_atp(atp, last); !done) return failed(done.error());
        if (!with_peer) continue;
        show_progress(repeat, repeats, "gloo");
        if (auto done = here.run_gloo(peer, algorithm); !done) return failed(done.error());
    }
    print_results(options, atp, peer, algorithm, last);
    return exit_passed;
}

// What each way of talking to the kernel brings, one added to the other (fig. 19 of the paper, for sockets).
int run_ladder(const Options& options) {
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
    const StopSignals signals;
    std::array<Times, rungs.size()> times;
    const std::uint32_t repeats = options.repeats != 0 ? options.repeats : 5;
    for (std::uint32_t repeat = 0; repeat < repeats; ++repeat) {
        for (std::size_t i = 0; i < rungs.size(); ++i) {
            show_progress(repeat, repeats, rungs[i].name);
            Options own = options;
            own.bench.options.mmsg = rungs[i].mmsg;
            own.bench.options.gso = rungs[i].gso;
            own.bench.options.gro = rungs[i].gro;
            own.bench.options.channels = own.switch_threads = rungs[i].threads;
            AllHere here(own, signals);
            Json last = Json::object();
            if (auto started = here.start_switch(); !started) return failed(started.error());
            if (auto done = here.run_atp(times[i], last); !done) return failed(done.error());
        }
    }
    if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\033[K");
    for (const auto& [bytes, plain] : times.front()) {
        double before = median(plain);
        if (!options.json) fmt::print("{} bytes, {} workers, {} rounds\n", bytes, options.workers, plain.size());
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

int run_bench(Options options) {
    if (options.bench.sizes.empty()) options.bench.sizes.assign(usual_sizes.begin(), usual_sizes.end());
    const std::size_t width = comm::bytes_of(options.bench.type);
    for (std::uint64_t& bytes : options.bench.sizes) {
        bytes -= bytes % width;
        if (bytes == 0) {
            fmt::print(stderr, "atp bench: --bytes: less than one {} of {} bytes\n",
                       comm::to_string(options.bench.type), width);
            return exit_misused;
        }
    }
    options.bench.serves_store = !options.store_elsewhere;
    if (!options.bench.options.dedicated_servers.empty()) {
        options.bench.options.server = comm::ServerPlace::dedicated;
    }
    if (options.switchml) options.bench.options.protocol = options.switchml_mode;
    if (options.without.mmsg) options.bench.options.mmsg = false;
    if (options.without.gso) options.bench.options.gso = false;
    if (options.without.gro) options.bench.options.gro = false;
    if (options.single) return run_rank(options);
    options.bench.world = options.workers;
    if (options.ladder) return run_ladder(options);
    return run_all_here(options);
}

std::optional<comm::ElementType> parse_bench_type(std::string_view text) {
    const auto type = comm::parse_element_type(text);
    if (type == comm::ElementType::float16 || type == comm::ElementType::bfloat16) return std::nullopt;
    return type;
}

std::optional<std::uint32_t> parse_window_packets(std::string_view text) {
    const auto packets = parse_size(text);
    if (!packets || !std::has_single_bit(*packets) || *packets > 1U << ATP_WINDOW_LOG2_MAX) return std::nullopt;
    return static_cast<std::uint32_t>(*packets);
}

// Whether it is SwitchML.
std::optional<bool> parse_protocol(std::string_view text) {
    if (text == "switchml") return true;
    return text == "atp" ? std::optional(false) : std::nullopt;
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

}  // namespace

std::function<int()> register_bench(CLI::App& program) {
    auto options = std::make_shared<Options>();
    CLI::App* command = program.add_subcommand(
        "bench", "Measure all-reduce: on this machine, or, one rank a process, on many; verify every sum");
    BenchRank& bench = options->bench;
    comm::Options& comm = bench.options;
    Flags what(*command, "What to measure");
    what.appended("--bytes", bench.sizes, "SIZE", parse_size, size_forms,
                  "of the tensor; may be repeated [1kB to 67MB]");
    what.number("--rounds", bench.rounds, 1, 1'000'000, "measured operations of each size [20]");
    what.number("--warmup", bench.warmup, 0, 1'000'000, "operations before those [3]");
    what.parsed("--type", bench.type, "TYPE", parse_bench_type, "float32, float64, int32 or int64",
                "of the elements [float32]");
    what.flag("--json", options->json, "a JSON object for each size");
    Flags rank(*command, "One rank of many");
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
    rank.flag("--store-elsewhere", options->store_elsewhere, "another process serves the store")->needs(single);
    Flags here(*command, "All ranks on this machine (the default)");
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
    Flags how(*command, "How");
    how.parsed("--protocol", options->switchml, "NAME", parse_protocol, "atp or switchml", "what travels [atp]");
    how.parsed("--switchml-mode", options->switchml_mode, "MODE", parse_switchml_mode, "lossless, faithful or offsets",
               "how it recovers losses: not at all, as printed, or comparing offsets [offsets]");
    how.parsed("--switchml-timeout", comm.resend_after, "TIME", parse_wait, wait_forms,
               "after which a packet without a result is sent again [1ms]");
    how.number("--channels", comm.channels, 1, 64, "independent streams, a thread each [1]");
    how.number("--lanes", comm.lanes, 2, ATP_MAX_LANES, "of a packet [what the way to the switch carries]");
    how.parsed("--window", comm.window, "N", parse_window_packets, "a power of two up to 65536",
               "packets under way at most; SwitchML's slots [by their size]");
    how.parsed("--server", comm.server, "PLACE", parse_place, "switch or colocated", "where servers stand [switch]");
    how.appended(
        "--dedicated-server", comm.dedicated_servers, "ADDRESS",
        [](std::string_view text) { return text.empty() ? std::nullopt : std::optional<std::string>(text); },
        "host:port", "where servers stand that are on hosts of their own; may be repeated");
    how.flag("--audit", comm.audit, "prove each sum with four bytes a packet");
    how.call(
        "--no-halving", [options] { options->bench.options.halve = false; },
        "keep the window on loss and congestion, as the papers' experiments do");
    how.parsed("--spin", comm.spin, "TIME", parse_duration, duration_forms, "poll before sleeping [0]");
    how.parsed("--without", options->without, "LIST", parse_without, "mmsg, gso, gro, with commas between them",
               "ways of sending and receiving to do without");
    how.parsed("--timeout", comm.join_timeout, "TIME", parse_wait, wait_forms, "to find the others [30s]");
    how.parsed("--deadline", comm.timeout, "TIME", parse_wait, wait_forms, "of each operation [300s]");
    return [options] { return run_bench(*options); };
}

}  // namespace atp::cli
