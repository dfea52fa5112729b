// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/time.h"
#include "protocol/membership.h"
#include "wire/address.h"
#include "wire/control.h"

namespace atp::control {

// One channel, as one switch sees it: who is below, what is above. Kept by a JoinTree; whoever sends packets reads it.
struct Branch {
    static constexpr std::uint8_t no_child = 0xFF;
    static constexpr std::size_t max_ranks = ATP_BITMAP_BITS * ATP_BITMAP_BITS;

    struct Child {
        wire::Address address;
        Time refreshed{};
        wire::JoiningUnit unit;
        bool hears_group = false;
    };
    // A unit whose members join here one by one: what aggregates for it on the way cannot be addressed.
    struct Rack {
        std::uint32_t mask = 0;
        std::uint32_t present = 0;
        std::array<Child, ATP_BITMAP_BITS> members;
    };
    // Where a child is kept: under its bit, or as a member of the rack that has it.
    struct Seat {
        static constexpr std::uint8_t no_member = 0xFF;

        std::uint8_t bit = 0;
        std::uint8_t member = no_member;

        [[nodiscard]] bool in_rack() const { return member != no_member; }
    };

    wire::ChannelTerms terms;
    std::uint8_t level = 0;     // 0, 1: aggregates; 2: holds the server for the one switch below
    bool hosts = false;         // the server stands here; of SwitchML, the slots
    std::uint32_t mask = 0;     // children that there are to be: members at level 0, units at level 1, one at level 2
    std::uint32_t present = 0;  // of a rack: all of its members
    std::array<Child, ATP_BITMAP_BITS> children;
    std::array<std::unique_ptr<Rack>, ATP_BITMAP_BITS> racks;  // level 1; in place of the child of that bit
    bool has_racks = false;
    std::vector<wire::JoiningUnit> units_below;  // level 2: what the one child speaks for
    std::uint32_t receivers = 0;                 // children that are there, in racks one by one
    std::array<std::uint8_t, max_ranks> child_of_rank{};
    bool opened = false;      // hosts: the server exists, or the slots are the channel's
    std::uint8_t stream = 0;  // opened, SwitchML: what its packets call their job
    bool begun = false;       // somebody below was told `ready` before
    wire::Address up;         // !hosts: where JOINs go
    wire::Address up_data;    // and where packets go, known from its answer
    bool up_ready = false;
    Time up_heard{};
    Time up_next{};  // when to confirm it again
    std::uint32_t missing_units_above = 0;
    wire::Address group;    // of no family but at the last switch, where the terms name one
    bool by_group = false;  // every child hears it: results go there
    Time group_next{};      // when it may be spoken to again

    // Before anybody has joined.
    [[nodiscard]] static Branch of(const wire::Join& join);

    [[nodiscard]] static Seat seat_of(std::uint8_t level, const wire::JoiningUnit& unit);
    [[nodiscard]] static Seat seat_of(const wire::Join& join) { return seat_of(join.level, join.units.front()); }
    // nullptr where it is empty.
    [[nodiscard]] const Child* at(const Seat& seat) const;
    void seat(const wire::Join& join, const wire::Address& from, Time now);
    void unseat(const Seat& seat);
    // Those of these bits who are there, one by one in racks; those of all bits without an argument.
    template <class Visit>
    void for_each_child(std::uint32_t bits, Visit&& visit) const;
    template <class Visit>
    void for_each_child(Visit&& visit) const {
        for_each_child(mask, visit);
    }
    // nullptr where nobody is there who has it, or leads to it.
    [[nodiscard]] const Child* child_to(std::uint16_t rank) const;

    [[nodiscard]] bool deserted() const;
    [[nodiscard]] bool complete() const { return present == mask; }
    // Packets may flow: everybody is there, up to the server.
    [[nodiscard]] bool ready() const { return complete() && (hosts ? opened : up_ready); }
    // Level 0: the unit that all children are members of.
    [[nodiscard]] std::uint8_t unit() const;
    // Of a unit, as far as this switch knows its members one by one.
    [[nodiscard]] std::uint32_t missing_members(std::uint8_t unit) const;
    // Complete: everybody below, as a JOIN names them.
    [[nodiscard]] std::vector<wire::JoiningUnit> units() const;
    // Who takes part, for the server; nothing where members contradict each other.
    [[nodiscard]] std::optional<protocol::Membership> membership() const;

  private:
    [[nodiscard]] Child& take(const Seat& seat, std::uint32_t rack_mask);
    void note_children();
};

template <class Visit>
void Branch::for_each_child(std::uint32_t bits, Visit&& visit) const {
    for (; bits != 0; bits &= bits - 1) {
        const auto bit = static_cast<unsigned>(std::countr_zero(bits));
        if (const Rack* const rack = racks[bit].get()) {
            for (std::uint32_t members = rack->present; members != 0; members &= members - 1) {
                visit(rack->members[static_cast<unsigned>(std::countr_zero(members))]);
            }
        } else if ((present >> bit & 1U) != 0) {
            visit(children[bit]);
        }
    }
}

[[nodiscard]] wire::Address address_of(const wire::Endpoint& endpoint);
[[nodiscard]] wire::Endpoint endpoint_of(const wire::Address& address);

}  // namespace atp::control
