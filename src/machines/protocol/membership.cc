// SPDX-License-Identifier: Apache-2.0
#include "protocol/membership.h"

#include <algorithm>
#include <utility>

#include "wire/format.h"

namespace atp::protocol {
namespace {

std::uint32_t low_bits(std::size_t count) { return count >= ATP_BITMAP_BITS ? ~0U : (1U << count) - 1U; }

// True if each rank 0..n-1 occurs exactly once, and the bitmaps have a bit for each unit and member.
bool well_formed(const std::vector<Unit>& units) {
    if (units.empty() || units.size() > ATP_BITMAP_BITS) return false;
    std::vector<std::uint16_t> ranks;
    for (const Unit& unit : units) {
        if (unit.ranks.empty() || unit.ranks.size() > ATP_BITMAP_BITS) return false;
        if (unit.direct && unit.ranks.size() != 1) return false;
        ranks.insert(ranks.end(), unit.ranks.begin(), unit.ranks.end());
    }
    std::sort(ranks.begin(), ranks.end());
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        if (ranks[rank] != rank) return false;
    }
    return true;
}

}  // namespace

Membership::Membership(std::vector<Unit> units) : units_(std::move(units)) {
    all_units_ = low_bits(units_.size());
    std::size_t workers = 0;
    for (const Unit& unit : units_) workers += unit.ranks.size();
    places_.resize(workers);
    for (std::size_t u = 0; u < units_.size(); ++u) {
        const Unit& unit = units_[u];
        unit_masks_.push_back(low_bits(unit.ranks.size()));
        for (std::size_t m = 0; m < unit.ranks.size(); ++m) {
            places_[unit.ranks[m]] = Place{.hop = static_cast<std::uint8_t>(unit.direct ? 1 : 0),
                                           .unit = static_cast<std::uint8_t>(u),
                                           .member = static_cast<std::uint8_t>(m),
                                           .mask0 = unit_masks_[u],
                                           .mask1 = all_units_};
        }
    }
}

std::optional<Membership> Membership::make(std::vector<Unit> units) {
    if (!well_formed(units)) return std::nullopt;
    return Membership(std::move(units));
}

std::optional<Membership> Membership::star(unsigned workers) { return racks(1, workers); }

std::optional<Membership> Membership::racks(unsigned racks, unsigned workers_each) {
    if (racks > ATP_BITMAP_BITS || workers_each > ATP_BITMAP_BITS) return std::nullopt;
    std::vector<Unit> units(racks);
    std::uint16_t rank = 0;
    for (Unit& unit : units) {
        for (unsigned member = 0; member < workers_each; ++member) unit.ranks.push_back(rank++);
    }
    return make(std::move(units));
}

}  // namespace atp::protocol
