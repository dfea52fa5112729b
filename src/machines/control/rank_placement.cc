// SPDX-License-Identifier: Apache-2.0
#include "control/rank_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

#include "wire/format.h"

namespace atp::control {
namespace {

Failure refuse(Reason reason, std::string text) { return fail(Operation::rendezvous, reason, {}, std::move(text)); }

struct PlacedUnit {
    std::uint64_t id = 0;  // of the first switch on the path
    std::string rack;
    protocol::Unit unit;
};

// The checks that need only the path of this rank and the last switch of the first one.
std::optional<Failure> objection_to(const RankPath& path, const RankPath& first, bool one_switch) {
    if (path.switches.back() != first.switches.back()) {
        return refuse(Reason::mismatched,
                      // errors.md, forms, mismatched: two switches without a root
                      fmt::format("the switches of ranks {} and {} have no common parent: start one more switch, and "
                                  "restart the others with --parent set to its address",
                                  first.rank, path.rank));
    }
    if (!one_switch && path.switches.size() > ATP_LEVELS) {
        return refuse(Reason::unsupported,
                      // errors.md, forms, unsupported
                      fmt::format("the path of rank {} has {} switches; use at most {} levels of switches for one job",
                                  path.rank, path.switches.size(), ATP_LEVELS));
    }
    if (!path.rack.empty() && path.switches.size() != 1) {
        // errors.md, forms, unsupported
        return refuse(Reason::unsupported, fmt::format("rank {} names a rack, but its switch has a parent: remove the "
                                                       "rack, or name the switch without a parent",
                                                       path.rank));
    }
    return std::nullopt;
}

}  // namespace

Result<protocol::Membership> place_ranks(std::span<const RankPath> paths) {
    const RankPath& first = paths.front();
    const bool one_switch = std::ranges::all_of(
        paths, [&](const RankPath& path) { return path.switches.front() == first.switches.front(); });
    const bool one_unit =
        one_switch && std::ranges::all_of(paths, [&](const RankPath& path) { return path.rack == first.rack; });
    std::vector<PlacedUnit> units;
    for (std::size_t rank = 0; rank < paths.size(); ++rank) {
        const RankPath& path = paths[rank];
        if (auto objection = objection_to(path, first, one_switch)) return *std::move(objection);
        const auto rank16 = static_cast<std::uint16_t>(rank);
        const std::uint64_t leaf = path.switches.front();
        if (!one_unit && leaf == path.switches.back() && path.rack.empty()) {
            units.push_back({leaf, {}, {.ranks = {rank16}, .direct = true}});
            continue;
        }
        const auto found = std::ranges::find_if(units, [&](const PlacedUnit& known) {
            return known.id == leaf && known.rack == path.rack && !known.unit.direct;
        });
        if (found == units.end()) {
            units.push_back({leaf, path.rack, {.ranks = {rank16}, .direct = false}});
        } else {
            found->unit.ranks.push_back(rank16);
        }
    }
    std::vector<protocol::Unit> membership;
    for (PlacedUnit& unit : units) {
        if (unit.unit.ranks.size() > ATP_BITMAP_BITS) {
            // errors.md, forms, too large: a switch serves at most 32 hosts of a job
            return refuse(Reason::too_large, fmt::format("{} ranks name one switch; use at most {} per switch, and "
                                                         "further switches with one common --parent",
                                                         unit.unit.ranks.size(), ATP_BITMAP_BITS));
        }
        membership.push_back(std::move(unit.unit));
    }
    if (membership.size() > ATP_BITMAP_BITS) {
        return refuse(Reason::too_large,
                      // errors.md, forms, too large
                      fmt::format("{} switches and direct ranks below the top switch; use at most {}",
                                  membership.size(), ATP_BITMAP_BITS));
    }
    // Each rank is in one unit, and units and members fit their bitmaps: make() has no objection left.
    auto placed = protocol::Membership::make(std::move(membership));
    assert(placed);
    return *std::move(placed);
}

}  // namespace atp::control
