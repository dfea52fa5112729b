// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <span>

#include "protocol/channel.h"
#include "protocol/membership.h"
#include "wire/format.h"

namespace atp::protocol {

// Relation of a set to the workers that a sum includes.
enum class SetRelation : std::uint8_t {
    disjoint,
    contains,  // all included workers, and at least one more
    inside,    // only included workers
    overlaps,  // included workers and others, but not all of the included ones
};

// Workers whose values are in a packet: members of one unit, or whole units. Whole units lack the owner of a sum, which
// stays at home.
//
// Ownership: a value. Its methods take the membership of the job for which of() made it.
// Threads: none.
// Failure: of() returns nothing for workers that the job does not have.
struct WorkerSet {
    std::uint32_t units = 0;
    std::uint32_t members = 0;  // of the one unit; not used if `whole`
    bool whole = false;
    std::uint32_t home_unit = 0;    // the bit of the unit that lacks a member, if it is whole; 0: none does
    std::uint32_t home_member = 0;  // the bit of that member

    // The workers of a gradient. `home`: the one that stays at home; nullptr: none.
    [[nodiscard]] static std::optional<WorkerSet> of(const atp_header& header, const Membership& membership,
                                                     const Place* home = nullptr);

    [[nodiscard]] bool is_home_alone() const {
        return !whole && home_unit != 0 && units == home_unit && members == home_member;
    }
    [[nodiscard]] bool single_worker() const { return !whole && std::has_single_bit(members); }
    // The one unit of a set that is not whole.
    [[nodiscard]] unsigned unit() const { return static_cast<unsigned>(std::countr_zero(units)); }
    // Members of a unit that are in the set.
    [[nodiscard]] std::uint32_t members_of(unsigned of_unit, const Membership& membership) const;
    [[nodiscard]] std::uint32_t count(const Membership& membership) const;
    // `included`: members of each unit.
    [[nodiscard]] SetRelation relation_to(std::span<const std::uint32_t> included, const Membership& membership) const;
    // Value of the audit lane of a gradient in which exactly this set is summed.
    [[nodiscard]] std::uint32_t audit_sum(const ChannelConfig& channel, std::uint32_t seq,
                                          const Membership& membership) const;
};

// Value of the audit lane of a result that includes these members of each unit.
[[nodiscard]] std::uint32_t result_audit(std::span<const std::uint32_t> included, const ChannelConfig& channel,
                                         std::uint32_t seq, const Membership& membership);

// Calls visit(n) for each set bit n, in ascending order.
template <class Visit>
void for_each_bit(std::uint32_t bits, Visit visit) {
    for (; bits != 0; bits &= bits - 1) visit(static_cast<unsigned>(std::countr_zero(bits)));
}

}  // namespace atp::protocol
