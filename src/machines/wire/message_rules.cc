// SPDX-License-Identifier: Apache-2.0
#include "wire/message_rules.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "wire/control.h"
#include "wire/format.h"

namespace atp::wire {

bool has_no_gap(std::uint32_t mask) { return mask != 0 && (mask & (mask + 1)) == 0; }

bool is_positive_and_finite(double value) { return std::isfinite(value) && value > 0; }

bool is_hold(std::uint32_t hold_ms) { return hold_ms == 0 || (hold_ms >= least_hold_ms && hold_ms <= most_hold_ms); }

namespace {

// Only multicast groups are accepted: otherwise a JOIN could direct results to a host that did not request them.
bool is_group(const Endpoint& endpoint) {
    const auto first = std::to_integer<unsigned>(endpoint.host.front());
    return endpoint.family == 4 ? (first & 0xF0U) == 0xE0U : first == 0xFFU;
}

}  // namespace

bool terms_fit(const ChannelTerms& terms) {
    return terms.lanes > (terms.audit ? 1 : 0) && (terms.group.family == 0 || is_group(terms.group));
}

bool unit_fits(const JoiningUnit& unit) {
    return unit.members != 0 && (unit.members & ~unit.mask0) == 0 && has_no_gap(unit.mask0) &&
           (!unit.direct || unit.mask0 == 1) && std::ranges::find(unit.ranks, ATP_WORKER_ALL) == unit.ranks.end();
}

namespace {

// At level 0 each worker joins alone. A switch joins for all members below it. If the switch of a rack has no
// address, each worker of the rack joins alone at level 1.
bool fits_level(const JoiningUnit& unit, std::uint8_t level) {
    const bool alone = std::has_single_bit(unit.members);
    const bool whole = unit.members == unit.mask0;
    return level == 0 ? alone && !unit.direct : whole || (level == 1 && alone);
}

}  // namespace

bool join_fits(const Join& join) {
    std::uint32_t seen = 0;
    for (const JoiningUnit& unit : join.units) {
        if (unit.unit >= ATP_BITMAP_BITS || !fits_level(unit, join.level)) return false;
        const std::uint32_t bit = 1U << unit.unit;
        if ((join.terms.mask1 & bit) == 0 || (seen & bit) != 0) return false;
        seen |= bit;
    }
    if (join.level != ATP_LEVELS) return join.units.size() == 1;
    return seen == join.terms.mask1 || join.cookie == 0;
}

bool report_fits(const Report& report) { return report.part < report.parts; }

bool is_rate(double bits_per_s) { return std::isfinite(bits_per_s) && bits_per_s >= 0; }

bool network_fits(const NetworkFacts& facts) {
    const bool names_switch = !facts.path.empty();
    return names_switch == (facts.lanes != 0) && (names_switch || !facts.hosts_switch);
}

}  // namespace atp::wire
