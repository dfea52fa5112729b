// SPDX-License-Identifier: Apache-2.0
#include "control/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <optional>
#include <string>
#include <vector>

#include "wire/format.h"

namespace atp::control {
namespace {

Failure refuse(Reason reason, std::string text) { return fail(Operation::rendezvous, reason, {}, std::move(text)); }

struct PlacedUnit {
    std::uint64_t id = 0;  // of the first switch on the path
    std::string rack;
    protocol::Unit unit;
};

// The checks that need only the path of this rank and the last switch of rank 0.
std::optional<Failure> objection_to(const Announcement& announcement, std::size_t rank, std::uint64_t root,
                                    bool one_switch) {
    const std::vector<wire::PathSwitch>& path = announcement.path;
    if (path.back().id != root) {
        return refuse(Reason::mismatched,
                      fmt::format("the switches of ranks 0 and {} have no common parent: start one more switch, and "
                                  "restart the others with --parent set to its address",
                                  rank));
    }
    if (!one_switch && path.size() > ATP_LEVELS) {
        return refuse(Reason::unsupported,
                      fmt::format("the path of rank {} has {} switches; use at most {} levels of switches for one job",
                                  rank, path.size(), ATP_LEVELS));
    }
    if (!announcement.rack.empty() && path.size() != 1) {
        return refuse(Reason::unsupported, fmt::format("rank {} names a rack, but its switch has a parent: remove the "
                                                       "rack, or name the switch without a parent",
                                                       rank));
    }
    return std::nullopt;
}

}  // namespace

Result<protocol::Membership> place_ranks(std::span<const Announcement> announcements) {
    const std::uint64_t root = announcements.front().path.back().id;
    const Announcement& first = announcements.front();
    const bool one_switch = std::ranges::all_of(
        announcements, [&](const Announcement& a) { return a.path.front().id == first.path.front().id; });
    const bool one_unit =
        one_switch && std::ranges::all_of(announcements, [&](const Announcement& a) { return a.rack == first.rack; });
    std::vector<PlacedUnit> units;
    for (std::size_t rank = 0; rank < announcements.size(); ++rank) {
        const Announcement& announcement = announcements[rank];
        if (auto objection = objection_to(announcement, rank, root, one_switch)) return *std::move(objection);
        const auto rank16 = static_cast<std::uint16_t>(rank);
        const std::uint64_t leaf = announcement.path.front().id;
        if (!one_unit && leaf == root && announcement.rack.empty()) {
            units.push_back({leaf, {}, {.ranks = {rank16}, .direct = true}});
            continue;
        }
        const auto found = std::ranges::find_if(units, [&](const PlacedUnit& known) {
            return known.id == leaf && known.rack == announcement.rack && !known.unit.direct;
        });
        if (found == units.end()) {
            units.push_back({leaf, announcement.rack, {.ranks = {rank16}, .direct = false}});
        } else {
            found->unit.ranks.push_back(rank16);
        }
    }
    std::vector<protocol::Unit> membership;
    for (PlacedUnit& unit : units) {
        if (unit.unit.ranks.size() > ATP_BITMAP_BITS) {
            return refuse(Reason::too_large, fmt::format("{} ranks name one switch; use at most {} per switch, and "
                                                         "further switches with one common --parent",
                                                         unit.unit.ranks.size(), ATP_BITMAP_BITS));
        }
        membership.push_back(std::move(unit.unit));
    }
    if (membership.size() > ATP_BITMAP_BITS) {
        return refuse(Reason::too_large,
                      fmt::format("{} switches and direct ranks below the top switch; use at most {}",
                                  membership.size(), ATP_BITMAP_BITS));
    }
    // Each rank is in one unit, and units and members fit their bitmaps: make() has no objection left.
    auto placed = protocol::Membership::make(std::move(membership));
    assert(placed);
    return *std::move(placed);
}

Result<protocol::Membership> place_ranks_of(const LayoutShare& share, std::span<const Announcement> announcements) {
    // Names of switches in this share; those of real ones are random.
    constexpr std::uint64_t server_id = 1;
    constexpr std::uint64_t first_leaf_id = 2;
    const auto named = [](std::uint64_t id) {
        wire::PathSwitch next;
        next.id = id;
        return next;
    };
    std::vector<Announcement> placed;
    for (std::size_t rank = 0; rank < announcements.size(); ++rank) {
        const Ascent& ascent = share.ascents[rank];
        Announcement& own = placed.emplace_back();
        if (ascent.kind == Ascent::Kind::in_path) own.rack = announcements[rank].rack;
        if (ascent.kind == Ascent::Kind::by_switch) own.path.push_back(named(announcements[rank].path.front().id));
        if (ascent.kind == Ascent::Kind::by_rank) own.path.push_back(named(first_leaf_id + ascent.leaf));
        own.path.push_back(named(server_id));
    }
    return place_ranks(placed);
}

std::optional<std::uint16_t> host_of_switch(std::span<const Announcement> announcements, std::uint64_t id) {
    const auto host = std::ranges::find_if(announcements, [id](const Announcement& announcement) {
        return announcement.hosts_switch && announcement.path.front().id == id;
    });
    if (host == announcements.end()) return std::nullopt;
    return static_cast<std::uint16_t>(host - announcements.begin());
}

}  // namespace atp::control
