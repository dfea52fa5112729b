// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/bench_here.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "apps/atp/option_flags.h"
#include "apps/common/child_processes.h"
#include "net/clock.h"
#include "store/tcp_store_server.h"

namespace atp::apps {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint32_t loopback_lanes = 16'352;

std::filesystem::path make_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "atp-bench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("a temporary folder cannot be created as " + name);
    return name;
}

Result<void> read(const std::string& text, BenchTimes& times, Json& last) {
    std::size_t begin = 0;
    while (begin < text.size()) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const Json line = Json::parse(text.substr(begin, end - begin), nullptr, false);
        if (line.is_discarded() || !line.contains("seconds")) {
            return fail(Operation::parse, Reason::malformed, "rank 0", text);
        }
        last[std::to_string(line["bytes"].get<std::uint64_t>())] = line;
        for (const Json& seconds : line["seconds"]) {
            times[line["bytes"].get<std::uint64_t>()].push_back(seconds.get<double>());
        }
        begin = end + 1;
    }
    return {};
}

}  // namespace

Result<void> BenchHere::start_switch() {
    if (!options_.sends_packets()) return {};
    if (!options_.bench.options.switch_address.empty()) {
        switch_address_ = options_.bench.options.switch_address;
        return {};
    }
    switchd::SwitchNodeConfig config;
    config.udp.local = wire::Address::loopback(wire::Family::ipv4, 0);
    config.udp.mmsg = options_.bench.options.mmsg;
    config.udp.gso = options_.bench.options.gso;
    config.udp.gro = options_.bench.options.gro;
    config.shards = options_.switch_threads;
    config.memory_bytes = options_.memory;
    config.indices = options_.bench.options.indices;
    config.lanes =
        static_cast<std::uint16_t>(options_.bench.options.lanes != 0 ? options_.bench.options.lanes : loopback_lanes);
    if (options_.additions.start_switch) {
        auto started = options_.additions.start_switch(config);
        if (!started) return tl::unexpected(started.error());
        switch_address_ = *std::move(started);
        if (!switch_address_.empty()) return {};
    }
    auto node = switchd::SwitchNode::start(config);
    if (!node) return tl::unexpected(node.error());
    node_ = *std::move(node);
    switch_address_ = to_string(node_->address());
    return {};
}

Result<void> BenchHere::run_atp(BenchTimes& times, Json& last) {
    auto store = store::TcpStoreServer::start(wire::Address::loopback(wire::Family::ipv4, 0));
    if (!store) return tl::unexpected(store.error());
    std::vector<std::vector<std::string>> commands;
    for (std::uint32_t rank = 0; rank < options_.workers; ++rank) {
        commands.push_back(rank_command(rank, to_string((*store)->local())));
    }
    const auto text = run_fleet(commands, interruption_, net::now() + options_.timeout);
    if (!text) return tl::unexpected(text.error());
    return read(*text, times, last);
}

Result<void> BenchHere::run_gloo(BenchTimes& times, const std::string& algorithm) {
    Json ignored;
    for (const std::uint64_t bytes : options_.bench.sizes) {
        const std::filesystem::path folder = make_folder();
        std::vector<std::vector<std::string>> commands;
        for (std::uint32_t rank = 0; rank < options_.workers; ++rank) {
            commands.push_back({program_beside("bench_gloo"), "--rank", std::to_string(rank), "--world",
                                std::to_string(options_.workers), "--store", folder.string(), "--address", "127.0.0.1",
                                "--bytes", std::to_string(bytes), "--rounds", std::to_string(options_.bench.rounds),
                                "--warmup", std::to_string(options_.bench.warmup), "--algorithm", algorithm, "--json"});
        }
        const auto text = run_fleet(commands, interruption_, net::now() + options_.timeout);
        std::filesystem::remove_all(folder);
        if (!text) return tl::unexpected(text.error());
        if (auto done = read(*text, times, ignored); !done) return done;
    }
    return {};
}

std::vector<std::string> BenchHere::rank_command(std::uint32_t rank, const std::string& store) const {
    const BenchRank& bench = options_.bench;
    comm::Options comm = bench.options;
    comm.switch_address = switch_address_;
    if (options_.hosts != 0) comm.host_name = fmt::format("host{}", rank / options_.ranks_per_host);
    std::vector<std::string> command{own_program(),
                                     "bench",
                                     "--rank",
                                     std::to_string(rank),
                                     "--world",
                                     std::to_string(options_.workers),
                                     "--rendezvous",
                                     store,
                                     "--store-elsewhere",
                                     "--rounds",
                                     std::to_string(bench.rounds),
                                     "--warmup",
                                     std::to_string(bench.warmup),
                                     "--type",
                                     std::string(to_string(bench.type)),
                                     "--json"};
    if (bench.magnitude > 0) command.insert(command.end(), {"--magnitude", fmt::format("{}", bench.magnitude)});
    if (!bench.measure) {
        command.insert(command.end(), {"--collective", std::string(to_string(bench.collective))});
        for (const std::uint64_t bytes : bench.sizes) {
            command.insert(command.end(), {"--bytes", std::to_string(bytes)});
        }
    }
    if (!comm.host_level) command.emplace_back("--network");
    if (options_.additions.flags_of_ranks) {
        std::ranges::move(options_.additions.flags_of_ranks(), std::back_inserter(command));
    }
    std::ranges::move(option_arguments(comm), std::back_inserter(command));
    return command;
}

}  // namespace atp::apps
