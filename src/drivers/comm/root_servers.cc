// SPDX-License-Identifier: Apache-2.0
#include "comm/root_servers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "comm/formation.h"
#include "net/clock.h"
#include "net/resolve.h"

namespace atp::comm {
namespace {

constexpr std::string_view yes = "yes";
// A rank on a host that answers does so within milliseconds.
constexpr Duration longest_answer = std::chrono::seconds(2);

struct PortRange {
    std::string host;
    std::uint16_t first = 0;
    std::uint16_t last = 0;
};

std::optional<std::uint16_t> port_of(std::string_view text) {
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return port;
}

// "host:port" or "host:first-last".
std::optional<PortRange> range_of(const std::string& text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos) return std::nullopt;
    const std::string ports = text.substr(colon + 1);
    const std::size_t dash = ports.find('-');
    const auto first = port_of(ports.substr(0, dash));
    const auto last = dash == std::string::npos ? first : port_of(ports.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    return PortRange{.host = text.substr(0, colon), .first = *first, .last = *last};
}

Result<wire::Address> address_at(const std::string& listen, const PortRange& range, std::uint32_t port) {
    const auto address = net::resolve(fmt::format("{}:{}", range.host, port));
    if (!address) return tl::unexpected(address.error());
    if (address->front().is_any()) {
        return fail(Operation::join, Reason::malformed, listen, "other hosts need the address of an interface");
    }
    return address->front();
}

Result<PortRange> range_in(const std::string& listen) {
    if (const auto range = range_of(listen)) return *range;
    return fail(Operation::join, Reason::malformed, listen,
                "name a switch, or an address for this rank: host:port, host:0 or host:first-last");
}

// Ranks of one host have one address. The lowest of them serves.
std::vector<std::uint32_t> first_rank_of_each_host(const std::vector<wire::Address>& addresses) {
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t rank = 0; rank < addresses.size(); ++rank) {
        const auto same_host = [&](std::uint32_t other) {
            return addresses[other].with_port(0) == addresses[rank].with_port(0);
        };
        if (std::ranges::none_of(ranks, same_host)) ranks.push_back(rank);
    }
    return ranks;
}

}  // namespace

Result<wire::Address> host_of_listen(const std::string& listen) {
    const auto range = range_in(listen);
    if (!range) return tl::unexpected(range.error());
    return address_at(listen, *range, range->first);
}

Result<std::unique_ptr<switchd::SwitchNode>> serve_at(const std::string& listen, const ServedPart& part) {
    const auto range = range_in(listen);
    if (!range) return tl::unexpected(range.error());
    Result<std::unique_ptr<switchd::SwitchNode>> node = nullptr;
    for (std::uint32_t port = range->first; port <= range->last; ++port) {
        const auto address = address_at(listen, *range, port);
        if (!address) return tl::unexpected(address.error());
        switchd::SwitchNodeConfig config;
        config.udp.local = *address;
        config.memory_bytes = part.memory_bytes;
        if (part.lanes != 0) config.lanes = static_cast<std::uint16_t>(part.lanes);
        node = switchd::SwitchNode::start(config);
        if (node || node.error().reason != Reason::in_use) break;
    }
    return node;
}

Result<RootServers> find_roots(store::Rendezvous& rendezvous, const Options& options, Time deadline) {
    const auto names = names_of_roots();
    const std::uint32_t own_rank = rendezvous.party().rank;
    RootServers found;
    auto own = serve_at(options.listen, {});
    if (!own) return tl::unexpected(own.error());
    const auto texts = rendezvous.all_gather(names[0], to_string((*own)->address()), deadline);
    if (!texts) return tl::unexpected(texts.error());
    std::vector<wire::Address> addresses;
    for (const std::string& text : *texts) {
        const auto address = wire::Address::parse(text);
        if (!address) return tl::unexpected(address.error());
        addresses.push_back(*address);
    }

    const std::vector<std::uint32_t> ranks = first_rank_of_each_host(addresses);
    if (std::ranges::find(ranks, own_rank) != ranks.end()) found.own = *std::move(own);
    std::string problem(yes);
    for (const std::uint32_t rank : ranks) {
        const Time until = std::min(deadline, net::after(net::now(), longest_answer));
        auto reach = reach_address(addresses[rank], options, until);
        if (reach) {
            found.roots.push_back({.rank = rank, .reach = *std::move(reach)});
        } else if (rank == ranks.front()) {
            return tl::unexpected(reach.error());
        } else if (problem == yes) {
            const store::Party& party = rendezvous.party();
            problem = fmt::format("rank {} does not reach rank {}: {}", party.number_of(own_rank),
                                  party.number_of(rank), to_string(reach.error()));
        }
    }
    const auto problems = rendezvous.all_gather(names[1], problem, deadline);
    if (!problems) return tl::unexpected(problems.error());
    const auto first = std::ranges::find_if(*problems, [](const std::string& text) { return text != yes; });
    if (first != problems->end()) {
        found.why_one = *first;
        found.roots.resize(1);
        if (own_rank != ranks.front()) found.own.reset();
    }
    return found;
}

}  // namespace atp::comm
