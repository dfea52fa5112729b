// SPDX-License-Identifier: Apache-2.0
#include "comm/layout_formation.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/units.h"
#include "comm/formation.h"
#include "comm/option_table.h"
#include "net/local_route.h"
#include "net/resolve.h"

namespace atp::comm {
namespace {

using control::Ascent;
using control::Layout;
using control::LayoutKind;
using control::LayoutRank;

// Aggregators that one job needs of a host: many times its packets in flight, so that few of them collide.
constexpr std::uint64_t memory_of_leaf = 16'000'000;

std::optional<LayoutKind> kind_named(ServerPlace place) {
    switch (place) {
        case ServerPlace::automatic: return std::nullopt;
        case ServerPlace::hosts: return LayoutKind::hosts;
        case ServerPlace::leaves: return LayoutKind::leaves;
        case ServerPlace::racks: return LayoutKind::racks;
        default: return LayoutKind::one_root;
    }
}

Result<LayoutRank> describe(const Options& options, const std::optional<SwitchReach>& reach) {
    LayoutRank own{.serves = !options.listen.empty(),
                   .host = {},
                   .rack = options.uplink.empty() ? options.rack : options.uplink,
                   .in_path = !options.rack.empty(),
                   .host_bits_per_s = options.link_rate,
                   .uplink_bits_per_s = options.uplink_rate};
    if (reach) {
        own.leaf = reach->welcome.path.front().id;
        own.root = reach->welcome.path.back().id;
    }
    if (own.serves) {
        const auto host = host_of_listen(options.listen);
        if (!host) return tl::unexpected(host.error());
        own.host = to_string(host->with_port(0));
    } else if (reach) {
        const auto local = net::local_address_towards(reach->address);
        if (!local) return tl::unexpected(local.error());
        own.host = to_string(local->with_port(0));
    }
    return own;
}

Result<std::vector<LayoutRank>> exchange(store::Rendezvous& rendezvous, const LayoutRank& own, const Options& options,
                                         Time deadline) {
    const std::string text = control::to_text(own) + "\n" + agreed_text(options);
    const auto texts = rendezvous.all_gather(names_of_network().front(), text, deadline);
    if (!texts) return tl::unexpected(texts.error());
    std::vector<LayoutRank> ranks;
    std::vector<std::string> terms;
    for (const std::string& each : *texts) {
        const std::size_t end = std::min(each.find('\n'), each.size());
        auto rank = control::layout_rank_from(each.substr(0, end), static_cast<std::uint32_t>(ranks.size()));
        if (!rank) return tl::unexpected(rank.error());
        ranks.push_back(*std::move(rank));
        terms.push_back(each.substr(std::min(end + 1, each.size())));
    }
    if (auto failure = dissent_about_terms(terms)) return *std::move(failure);
    return ranks;
}

std::string number_of(const store::Party& party, std::size_t rank) {
    return std::to_string(party.number_of(static_cast<std::uint32_t>(rank)));
}

Failure refuse(std::string peer, std::string text) {
    return fail(Operation::join, Reason::unsupported, std::move(peer), std::move(text));
}

// Why the ranks cannot form a layout with servers.
Failure objection(const store::Party& party, const std::vector<LayoutRank>& ranks, std::string_view layout) {
    const auto silent = std::ranges::find(ranks, false, &LayoutRank::serves);
    if (silent == ranks.end()) {
        return refuse({}, fmt::format("the layout \"{}\" would need more than {} units, or ranks in one of them",
                                      layout, ATP_BITMAP_BITS));
    }
    const std::string rank = "rank " + number_of(party, static_cast<std::size_t>(silent - ranks.begin()));
    return refuse(rank, fmt::format("{} has no address to listen at, which the layout \"{}\" needs of all ranks: set "
                                    "`listen`, or name switches below one root",
                                    rank, layout));
}

Result<Layout> choose(const store::Party& party, const std::vector<LayoutRank>& ranks, const Options& options) {
    const auto kind = kind_named(options.server);
    const bool all_name_switches = std::ranges::find(ranks, 0U, &LayoutRank::leaf) == ranks.end();
    if (!kind) {
        if (auto best = control::best_layout(ranks)) return *std::move(best);
    } else if (*kind != LayoutKind::one_root) {
        if (auto layout = control::layout_of(*kind, ranks)) return *std::move(layout);
        return objection(party, ranks, control::to_string(*kind));
    }
    if (all_name_switches) {
        // Ranks that see different roots look again: a parent may have changed.
        return control::layout_of(LayoutKind::one_root, ranks).value_or(Layout{});
    }
    if (!kind) return objection(party, ranks, "hosts");
    const auto nameless = std::ranges::find(ranks, 0U, &LayoutRank::leaf) - ranks.begin();
    const std::string rank = "rank " + number_of(party, static_cast<std::size_t>(nameless));
    return refuse(rank, fmt::format("{} names no switch, which this place of the servers needs of all ranks: name one, "
                                    "or leave `server` unset",
                                    rank));
}

std::string busiest_text(const Layout& layout, const store::Party& party) {
    const std::string rank = number_of(party, layout.busiest.rank);
    std::string text = fmt::format("busiest is the link {} rank {} with {:.2f} tensors in each direction",
                                   layout.busiest.is_uplink ? "above the rack of" : "of", rank, layout.busiest.tensors);
    if (layout.busiest.bits_per_s > 0) text += fmt::format(" at {:.4g} Mbit/s", layout.busiest.bits_per_s / 1e6);
    return text;
}

std::string layout_text(const Layout& layout, const std::vector<LayoutRank>& ranks, const store::Party& party) {
    if (layout.kind == LayoutKind::one_root) {
        return "one switch above all ranks adds; " + busiest_text(layout, party);
    }
    std::set<std::uint64_t> switches;
    std::set<std::uint16_t> hosts;
    for (const control::LayoutShare& share : layout.shares) {
        for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
            const Ascent& ascent = share.ascents[rank];
            if (ascent.kind == Ascent::Kind::by_switch) switches.insert(ranks[rank].leaf);
            if (ascent.kind == Ascent::Kind::by_rank) hosts.insert(ascent.leaf);
        }
    }
    std::set<std::uint16_t> servers;
    for (const control::LayoutShare& share : layout.shares) servers.insert(share.server);
    std::string text = fmt::format("{} hosts serve the sums", servers.size());
    if (!switches.empty()) text += fmt::format(", {} switches add for their racks", switches.size());
    if (!hosts.empty()) text += fmt::format(", {} hosts take turns to add for theirs", hosts.size());
    return fmt::format("{}; {}, with a switch above all ranks 1", text, busiest_text(layout, party));
}

// ----------------------------------------------------------------------------------------------------------- Servers

// The switches that hosts run in turn for their racks, by rank; no family: none.
Result<std::vector<wire::Address>> start_leaves(store::Rendezvous& rendezvous, const Options& options,
                                                FormedLayout& formed, Time deadline) {
    const std::uint32_t own = rendezvous.party().rank;
    const auto leads = [&](const control::LayoutShare& share) {
        return std::ranges::any_of(share.ascents, [&](const Ascent& ascent) {
            return ascent.kind == Ascent::Kind::by_rank && ascent.leaf == own;
        });
    };
    std::string address;
    if (std::ranges::any_of(formed.layout.shares, leads)) {
        auto node = serve_at(options.listen, {.memory_bytes = memory_of_leaf, .lanes = formed.lanes});
        if (!node) return tl::unexpected(node.error());
        address = to_string((*node)->address());
        formed.path.push_back(
            {.aggregators = switchd::aggregators_of_shard((*node)->config()), .lanes = (*node)->config().lanes});
        formed.nodes.push_back(*std::move(node));
    }
    const auto texts = rendezvous.all_gather(names_of_roots()[2], address, deadline);
    if (!texts) return tl::unexpected(texts.error());
    std::vector<wire::Address> leaves;
    for (const std::string& text : *texts) {
        leaves.push_back(text.empty() ? wire::Address{} : wire::Address::parse(text).value_or(wire::Address{}));
    }
    return leaves;
}

// If some ranks do not reach each other, one of them serves alone.
Layout with_one_server(std::size_t ranks, std::uint32_t server) {
    return {.kind = LayoutKind::hosts,
            .shares = {{.server = static_cast<std::uint16_t>(server), .ascents = std::vector<Ascent>(ranks)}},
            .loads = {},
            .busiest = {}};
}

Result<void> place_on_hosts(store::Rendezvous& rendezvous, const std::vector<LayoutRank>& ranks,
                            const std::optional<SwitchReach>& reach, const Options& options, FormedLayout& formed,
                            Time deadline) {
    const store::Party& party = rendezvous.party();
    auto found = find_roots(rendezvous, options, deadline);
    if (!found) return tl::unexpected(found.error());
    if (!found->why_one.empty()) {
        auto root = control::layout_of(LayoutKind::one_root, ranks);
        if (root && options.server == ServerPlace::automatic) {
            formed.layout = *std::move(root);
            formed.text = fmt::format("one switch above all ranks adds, because {}", found->why_one);
            return {};
        }
        const std::uint32_t server = found->roots.front().rank;
        formed.layout = with_one_server(ranks.size(), server);
        formed.text = fmt::format("rank {} serves all sums, because {}", party.number_of(server), found->why_one);
    }
    if (found->own != nullptr) formed.nodes.push_back(std::move(found->own));
    formed.reach = found->roots.front().reach;
    formed.lanes = formed.reach.lanes;
    for (const RootServer& root : found->roots) formed.lanes = std::min(formed.lanes, root.reach.lanes);
    const bool by_switch = std::ranges::any_of(formed.layout.shares, [&](const control::LayoutShare& share) {
        return share.ascents[party.rank].kind == Ascent::Kind::by_switch;
    });
    formed.path = formed.reach.welcome.path;
    if (by_switch) {
        formed.path = {reach->welcome.path.front()};
        formed.reach = *reach;
        formed.lanes = std::min(formed.lanes, reach->lanes);
    }
    auto leaves = start_leaves(rendezvous, options, formed, deadline);
    if (!leaves) return tl::unexpected(leaves.error());
    for (std::size_t number = 0; number < formed.layout.shares.size(); ++number) {
        const control::LayoutShare& planned = formed.layout.shares[number];
        const RootServer& root = *std::ranges::find(found->roots, planned.server, &RootServer::rank);
        const Ascent& ascent = planned.ascents[party.rank];
        const auto server = static_cast<std::uint16_t>(root.rank);
        ShareOfRank share{.switch_address = root.reach.address,
                          .switch_rank = server,
                          .root = root.reach.address,
                          .root_rank = server,
                          .in_path = ascent.kind == Ascent::Kind::in_path};
        if (ascent.kind == Ascent::Kind::by_switch) {
            share.switch_address = reach->address;
            share.switch_rank.reset();
        } else if (ascent.kind == Ascent::Kind::by_rank) {
            share.switch_address = (*leaves)[ascent.leaf];
            share.switch_rank = ascent.leaf;
        }
        formed.shares.push_back(share);
    }
    return {};
}

}  // namespace

Result<FormedLayout> agree_on_layout(store::Rendezvous& rendezvous, const Options& options, Time deadline) {
    const store::Party& party = rendezvous.party();
    std::optional<SwitchReach> reach;
    if (!options.switch_address.empty() || options.listen.empty()) {
        auto reached = reach_switch(options, deadline);
        if (!reached) return tl::unexpected(reached.error());
        reach = *std::move(reached);
    }
    const auto own = describe(options, reach);
    if (!own) return tl::unexpected(own.error());
    const auto ranks = exchange(rendezvous, *own, options, deadline);
    if (!ranks) return tl::unexpected(ranks.error());
    auto layout = choose(party, *ranks, options);
    if (!layout) return tl::unexpected(layout.error());
    FormedLayout formed;
    formed.layout = *std::move(layout);
    formed.text = layout_text(formed.layout, *ranks, party);
    if (formed.has_servers()) {
        if (auto done = place_on_hosts(rendezvous, *ranks, reach, options, formed, deadline); !done) {
            return tl::unexpected(done.error());
        }
    }
    if (formed.has_servers()) return formed;
    formed.lanes = reach->lanes;
    formed.path = reach->welcome.path;
    formed.reach = *std::move(reach);
    formed.shares.push_back({.switch_address = formed.reach.address,
                             .switch_rank = {},
                             .root = {},
                             .root_rank = {},
                             .in_path = own->in_path});
    return formed;
}

}  // namespace atp::comm
