// SPDX-License-Identifier: Apache-2.0
// The mode floats of a server: values that do not fit the integers of their fragment.
// A sum that overflows needs no floats: merge_integers() of server.cc asks for the gradients without aggregation.
#include <algorithm>
#include <bit>
#include <utility>

#include "protocol/fragment_sum.h"
#include "protocol/server.h"

namespace atp::protocol {
inline namespace ATP_VARIANT {

// A member of one rank does not name it, and names its last packet only if the form of the fragment is narrow.
Server::FloatsOfMember Server::take_floats(Record& record, const atp_header& header, const WorkerSet& set) {
    if (set.relation_to(records_.included(record), membership_) != SetRelation::disjoint) return {};
    const unsigned rank = atp_part_rank(&header);
    const bool one_packet = rank == 0 && atp_lanes_form(&header) == ATP_DTYPE_INT32;
    const bool is_last = one_packet || (header.flags & ATP_FLAG_LAST_RANK) != 0;
    FloatsIn& floats = records_.floats_in(record, set.unit(), static_cast<unsigned>(std::countr_zero(set.members)));
    std::uint64_t& ranks = floats.ranks[atp_part_packet(&header)];
    const std::uint64_t bit = std::uint64_t{1} << std::max(rank, 1U);
    if ((ranks & bit) != 0 && !ATP_BREAK(add_rank_twice)) return {};
    ranks |= bit | (is_last ? 1U : 0U);
    const bool early = ATP_BREAK(include_member_early) || (is_last && ATP_BREAK(half_wide_copy));
    return {.is_new = true, .is_last = floats.complete() || early};
}

// A packet of floats is from one worker. The exact sum does not depend on the order of the packets.
void Server::merge_floats(Record& record, const wire::Packet& packet, const WorkerSet& set, Time now) {
    if (!set.single_worker()) {
        ++counters_.refused;
        return;
    }
    if (!audit_holds(packet, set)) {
        ++counters_.audit_failures;
        return;
    }
    const bool first = record.mode != Mode::floats;
    if (first && !begin_floats(record, packet, now)) {
        ++counters_.no_memory;
        return;
    }
    const FloatsOfMember floats = take_floats(record, packet.header, set);
    if (!floats.is_new) {
        ++counters_.duplicates;
        return;
    }
    add_floats(records_, record, packet, scale_from(packet.header.scale, config_.scale));
    record.merges += std::exchange(record.filled, true) ? 1U : 0U;
    if (floats.is_last) mark_in(record, set, false);
    // At the exact scale no worker sends integers.
    if (first && packet.header.scale != exact_scale) ask_missing(record, packet.header, now, set);
}

// In Mode::floats, the sum starts from zero. In the form int32, each rank has all of its floats in one packet, and all
// these packets have the length of this one. On one machine, it may be far below that of the longest packet.
bool Server::begin_floats(Record& record, const wire::Packet& packet, Time now) {
    const std::uint8_t form = atp_lanes_form(&packet.header);
    const std::size_t longest = records_.payload() * atp_elements_per_word(form);
    const std::size_t elements = form == ATP_DTYPE_INT32 ? range_of(records_, packet).end : longest;
    if (!records_.hold_floats(record, elements, is_first(record))) return false;
    raise_mode(record, Mode::floats, now);
    ++counters_.float_fragments;
    std::ranges::fill(records_.included(record), 0U);
    record.count = 0;
    record.merges = 0;
    record.filled = false;
    record.unscaled = false;
    record.sized = false;
    record.elements = 0;
    return true;
}

}  // namespace ATP_VARIANT
}  // namespace atp::protocol
