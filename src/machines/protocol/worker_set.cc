// SPDX-License-Identifier: Apache-2.0
#include "protocol/worker_set.h"

namespace atp::protocol {

std::optional<WorkerSet> WorkerSet::of(const atp_header& header, const Membership& membership, const Place* home) {
    const WorkerSet set{.units = header.bitmap1,
                        .members = header.bitmap0,
                        .whole = (header.flags & ATP_FLAG_WHOLE) != 0,
                        .home_unit = home != nullptr ? 1U << home->unit : 0U,
                        .home_member = home != nullptr ? 1U << home->member : 0U};
    if ((set.units & ~membership.all_units()) != 0 || set.units == 0) return std::nullopt;
    if (set.whole) return set;
    if (!std::has_single_bit(set.units)) return std::nullopt;
    if (set.members == 0 || (set.members & ~membership.unit_mask(set.unit())) != 0) return std::nullopt;
    return set;
}

std::uint32_t WorkerSet::members_of(unsigned of_unit, const Membership& membership) const {
    if ((units >> of_unit & 1U) == 0) return 0;
    if (!whole) return members;
    const bool lacks_one = (home_unit >> of_unit & 1U) != 0;
    return membership.unit_mask(of_unit) & ~(lacks_one ? home_member : 0U);
}

std::uint32_t WorkerSet::count(const Membership& membership) const {
    std::uint32_t workers = 0;
    for_each_bit(units, [&](unsigned of_unit) {
        workers += static_cast<std::uint32_t>(std::popcount(members_of(of_unit, membership)));
    });
    return workers;
}

SetRelation WorkerSet::relation_to(std::span<const std::uint32_t> included, const Membership& membership) const {
    bool any_common = false;
    bool any_new = false;
    bool any_left_out = false;
    for (unsigned of_unit = 0; of_unit < included.size(); ++of_unit) {
        const std::uint32_t ours = members_of(of_unit, membership);
        any_common |= (ours & included[of_unit]) != 0;
        any_new |= (ours & ~included[of_unit]) != 0;
        any_left_out |= (included[of_unit] & ~ours) != 0;
    }
    if (!any_common) return SetRelation::disjoint;
    if (!any_new) return SetRelation::inside;
    return any_left_out ? SetRelation::overlaps : SetRelation::contains;
}

std::uint32_t WorkerSet::audit_sum(const ChannelConfig& channel, std::uint32_t seq,
                                   const Membership& membership) const {
    std::uint32_t sum = 0;
    for_each_bit(units, [&](unsigned of_unit) {
        for_each_bit(members_of(of_unit, membership),
                     [&](unsigned member) { sum += channel.audit_of(seq, membership.rank_of(of_unit, member)); });
    });
    return sum;
}

std::uint32_t result_audit(std::span<const std::uint32_t> included, const ChannelConfig& channel, std::uint32_t seq,
                           const Membership& membership) {
    std::uint32_t sum = 0;
    for (unsigned unit = 0; unit < included.size(); ++unit) {
        for_each_bit(included[unit],
                     [&](unsigned member) { sum += channel.result_audit_of(seq, membership.rank_of(unit, member)); });
    }
    return sum;
}

}  // namespace atp::protocol
