// SPDX-License-Identifier: Apache-2.0
#include "control/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "wire/format.h"

namespace atp::control {
namespace {

// A layout with more steps has to be faster by this share.
constexpr double noticeable = 0.02;

// Tensors on each link. Gradients go up as results come down, so both directions carry the same.
class Links {
  public:
    explicit Links(std::span<const LayoutRank> ranks) : ranks_(ranks) {
        std::map<std::string, std::size_t> hosts;
        std::map<std::string, std::size_t> racks;
        for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
            const std::string& host = ranks[rank].host;
            hosts_.push_back(hosts.try_emplace(host.empty() ? fmt::format("/{}", rank) : host, rank).first->second);
            const std::string rack = rack_key(ranks[rank]);
            racks_.push_back(rack.empty() ? elsewhere : racks.try_emplace(rack, rank).first->second);
            const double rate = ranks[rank].host_bits_per_s;
            if (rate > 0) usual_ = usual_ > 0 ? std::min(usual_, rate) : rate;
        }
        one_rack_ = racks.size() == 1 && std::ranges::find(racks_, elsewhere) == racks_.end();
        host_loads_.resize(ranks.size());
        uplink_loads_.resize(ranks.size());
    }

    [[nodiscard]] std::size_t host(std::size_t rank) const { return hosts_[rank]; }  // its first rank
    [[nodiscard]] bool has_rack(std::size_t rank) const { return racks_[rank] != elsewhere; }
    [[nodiscard]] std::size_t rack(std::size_t rank) const { return racks_[rank]; }  // its first rank

    // From one rank to another one, and as much back.
    void exchange(std::size_t from, std::size_t to, double tensors) {
        if (hosts_[from] == hosts_[to]) return;
        load_host(from, tensors);
        load_host(to, tensors);
        cross(racks_[from], racks_[to], tensors);
    }
    // From a rank to the switch of its rack, and as much back.
    void climb(std::size_t rank, double tensors) { load_host(rank, tensors); }
    // From the switch of a rack to a rank, and as much back.
    void descend(std::size_t rack, std::size_t to, double tensors) {
        load_host(to, tensors);
        cross(rack, racks_[to], tensors);
    }
    // From a rack to a switch above all racks.
    void leave(std::size_t rack, double tensors) {
        if (rack != elsewhere && !one_rack_) uplink_loads_[rack] += tensors;
    }

    [[nodiscard]] Layout measured(Layout layout) const {
        for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
            note(layout, rank, false, host_loads_[rank], ranks_[rank].host_bits_per_s);
            note(layout, rank, true, uplink_loads_[rank], ranks_[rank].uplink_bits_per_s);
        }
        return layout;
    }

    static constexpr std::size_t elsewhere = SIZE_MAX;  // the rack is not known

  private:
    static std::string rack_key(const LayoutRank& rank) {
        if (!rank.rack.empty()) return rank.rack;
        return rank.leaf == 0 ? std::string() : fmt::format("/{}", rank.leaf);
    }
    void load_host(std::size_t rank, double tensors) { host_loads_[hosts_[rank]] += tensors; }
    void cross(std::size_t from, std::size_t to, double tensors) {
        if (from == to) return;
        leave(from, tensors);
        leave(to, tensors);
    }
    void note(Layout& layout, std::size_t rank, bool is_uplink, double tensors, double named) const {
        if (tensors == 0) return;
        const LinkLoad load{.rank = static_cast<std::uint16_t>(rank),
                            .is_uplink = is_uplink,
                            .tensors = tensors,
                            .bits_per_s = named > 0 ? named : usual_};
        layout.loads.push_back(load);
        const double duration = tensors / (load.bits_per_s > 0 ? load.bits_per_s : 1);
        if (duration <= layout.duration) return;
        layout.duration = duration;
        layout.busiest = load;
    }

    std::span<const LayoutRank> ranks_;
    std::vector<std::size_t> hosts_;  // by rank: the first rank of its host
    std::vector<std::size_t> racks_;  // by rank: the first rank of its rack
    std::vector<double> host_loads_;  // by the first rank of the host
    std::vector<double> uplink_loads_;
    double usual_ = 0;  // rate of a link that is not named
    bool one_rack_ = false;
};

// The first rank of each host.
std::vector<std::size_t> hosts_of(const Links& links, std::size_t ranks) {
    std::vector<std::size_t> hosts;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        if (links.host(rank) == rank) hosts.push_back(rank);
    }
    return hosts;
}

// Whether the rack of this rank has a switch. The root of ranks of other racks is none.
bool has_switch(std::span<const LayoutRank> ranks, const LayoutRank& own) {
    if (own.in_path) return true;
    return own.leaf != 0 && std::ranges::none_of(ranks, [&](const LayoutRank& other) {
               return other.root == own.leaf && (other.leaf != own.leaf || other.rack != own.rack);
           });
}

struct ServedShare {
    std::size_t server = 0;
    std::size_t number = 0;
};

// The hosts of a rack without a switch take turns. If one of them serves the share, all of them send to it.
Ascent ascent_of(LayoutKind kind, std::span<const LayoutRank> ranks, const Links& links,
                 const std::vector<std::size_t>& hosts, const ServedShare& share, std::size_t rank) {
    const LayoutRank& own = ranks[rank];
    if (kind != LayoutKind::hosts && own.in_path) return {.kind = Ascent::Kind::in_path};
    if (kind != LayoutKind::hosts && has_switch(ranks, own)) return {.kind = Ascent::Kind::by_switch};
    const bool alone = kind != LayoutKind::racks || !links.has_rack(rank);
    if (alone || links.rack(rank) == links.rack(share.server)) return {};
    std::vector<std::size_t> in_turn;
    std::ranges::copy_if(hosts, std::back_inserter(in_turn),
                         [&](std::size_t host) { return links.rack(host) == links.rack(rank); });
    if (in_turn.size() < 2) return {};
    return {.kind = Ascent::Kind::by_rank, .leaf = static_cast<std::uint16_t>(in_turn[share.number % in_turn.size()])};
}

void load_share(Links& links, std::span<const LayoutRank> ranks, const LayoutShare& share, double tensors) {
    std::set<std::uint64_t> switches;
    std::set<std::size_t> racks;
    std::set<std::size_t> leaves;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        const Ascent& ascent = share.ascents[rank];
        switch (ascent.kind) {
            case Ascent::Kind::direct: links.exchange(rank, share.server, tensors); break;
            case Ascent::Kind::by_switch:
                links.climb(rank, tensors);
                if (switches.insert(ranks[rank].leaf).second) links.descend(links.rack(rank), share.server, tensors);
                break;
            case Ascent::Kind::in_path:
                links.climb(rank, tensors);
                if (racks.insert(links.rack(rank)).second) links.descend(links.rack(rank), share.server, tensors);
                break;
            case Ascent::Kind::by_rank:
                links.exchange(rank, ascent.leaf, tensors);
                if (leaves.insert(ascent.leaf).second) links.exchange(ascent.leaf, share.server, tensors);
                break;
        }
    }
}

bool has_one_root(std::span<const LayoutRank> ranks) {
    return std::ranges::all_of(
        ranks, [&](const LayoutRank& rank) { return rank.root != 0 && rank.root == ranks.front().root; });
}

// The bitmaps have a bit for each unit, and one for each of its members.
bool fits_bitmaps(std::span<const LayoutRank> ranks, const Links& links, const LayoutShare& share) {
    std::map<std::uint64_t, unsigned> units;  // by their switch, or by the first rank of the rack
    unsigned direct = 0;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        const Ascent::Kind kind = share.ascents[rank].kind;
        if (kind == Ascent::Kind::direct) {
            ++direct;
        } else {
            ++units[kind == Ascent::Kind::by_switch ? ranks[rank].leaf : links.rack(rank)];
        }
    }
    return units.size() + direct <= ATP_BITMAP_BITS &&
           std::ranges::all_of(units, [](const auto& unit) { return unit.second <= ATP_BITMAP_BITS; });
}

Layout one_root(std::span<const LayoutRank> ranks, Links links) {
    std::set<std::size_t> racks;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        links.climb(rank, 1);
        const bool at_root = ranks[rank].leaf == ranks[rank].root;
        const bool alone = at_root && !ranks[rank].in_path;
        if (alone || racks.insert(links.rack(rank)).second) links.leave(links.rack(rank), 1);
    }
    return links.measured({.kind = LayoutKind::one_root});
}

// With these servers, each of which has one share.
std::optional<Layout> served(LayoutKind kind, std::span<const LayoutRank> ranks, Links links,
                             const std::vector<std::size_t>& servers) {
    const std::vector<std::size_t> hosts = hosts_of(links, ranks.size());
    Layout layout{.kind = kind};
    for (std::size_t number = 0; number < servers.size(); ++number) {
        LayoutShare share{.server = static_cast<std::uint16_t>(servers[number])};
        for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
            share.ascents.push_back(ascent_of(kind, ranks, links, hosts, {share.server, number}, rank));
        }
        if (!fits_bitmaps(ranks, links, share)) return std::nullopt;
        load_share(links, ranks, share, 1.0 / static_cast<double>(servers.size()));
        layout.shares.push_back(std::move(share));
    }
    return links.measured(std::move(layout));
}

bool is_faster(const std::optional<Layout>& layout, const std::optional<Layout>& best) {
    return layout && (!best || layout->duration < best->duration * (1 - noticeable));
}

}  // namespace

std::string_view to_string(LayoutKind kind) {
    switch (kind) {
        case LayoutKind::one_root: return "switch";
        case LayoutKind::hosts: return "hosts";
        case LayoutKind::leaves: return "leaves";
        case LayoutKind::racks: return "racks";
    }
    return "unknown";
}

std::optional<Layout> layout_of(LayoutKind kind, std::span<const LayoutRank> ranks) {
    const Links links(ranks);
    if (kind == LayoutKind::one_root) {
        return has_one_root(ranks) ? std::optional(one_root(ranks, links)) : std::nullopt;
    }
    if (!std::ranges::all_of(ranks, &LayoutRank::serves)) return std::nullopt;
    const std::vector<std::size_t> hosts = hosts_of(links, ranks.size());
    auto layout = served(kind, ranks, links, hosts);
    if (!layout || kind == LayoutKind::hosts) return layout;
    // A host behind a switch sends each gradient once, so its link has room for a larger share of the sums.
    std::vector<std::size_t> weighted = hosts;
    std::ranges::copy_if(hosts, std::back_inserter(weighted),
                         [&](std::size_t rank) { return has_switch(ranks, ranks[rank]); });
    auto other = served(kind, ranks, links, weighted);
    return is_faster(other, layout) ? other : layout;
}

std::optional<Layout> best_layout(std::span<const LayoutRank> ranks) {
    std::optional<Layout> best;
    for (const LayoutKind kind : {LayoutKind::one_root, LayoutKind::hosts, LayoutKind::leaves, LayoutKind::racks}) {
        auto layout = layout_of(kind, ranks);
        const bool on_one_host = layout && layout->loads.empty();
        if (best && on_one_host) continue;  // no link to choose for: the switch that the ranks name
        if (is_faster(layout, best)) best = std::move(layout);
    }
    return best;
}

}  // namespace atp::control
