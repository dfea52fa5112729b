// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "control/branch_failures.h"
#include "control/failure_detector.h"
#include "control/host_key.h"
#include "control/joined_order.h"
#include "control/long_path.h"
#include "control/owner.h"
#include "control/pace_meter.h"
#include "protocol/archive.h"
#include "protocol/membership.h"
#include "wire/address.h"
#include "wire/control.h"

namespace atp::control {

// One channel on one switch: its children, its parent, and whether packets may flow.
//
// Ownership: a JoinTree owns each branch and changes it. Drivers read it to route packets.
// Calling order: of(), then attach() for each JOIN and detach() for each child that leaves or expires.
// Threads: none. Failure: none; JoinTree checks each JOIN before attach().
struct Branch {
    static constexpr std::uint8_t no_child = 0xFF;
    static constexpr std::size_t max_ranks = ATP_BITMAP_BITS * ATP_BITMAP_BITS;

    struct Child {
        wire::Address address;
        FailureDetector detector;  // received: a JOIN
        Time asked_at{};           // last JOINED that no JOIN of the child caused
        wire::JoiningUnit unit;
        std::uint64_t nonce = 0;       // of its JOINs
        std::uint32_t epoch = 0;       // of its last JOIN
        std::uint32_t join_bytes = 0;  // length of its last JOIN: a JOINED is as long
        std::uint32_t key = 0;         // id of the key of its last JOIN; 0: none
        wire::Pace pace;               // of its last JOIN: among the members below it
        bool receives_group = false;

        template <protocol::Archive Archive>
        void persist(Archive& archive);
    };
    // A unit whose members join here separately, because the switch that aggregates for it has no address.
    struct Rack {
        std::uint32_t mask = 0;
        std::uint32_t present = 0;
        std::array<Child, ATP_BITMAP_BITS> members;
    };
    // Position of a child: children[bit], or member `member` of racks[bit].
    struct Position {
        static constexpr std::uint8_t no_member = 0xFF;

        std::uint8_t bit = 0;
        std::uint8_t member = no_member;

        [[nodiscard]] bool in_rack() const { return member != no_member; }
        [[nodiscard]] std::uint16_t key() const { return static_cast<std::uint16_t>(bit << 8U | member); }
    };

    wire::ChannelTerms terms;
    std::uint8_t level = 0;     // 0, 1: aggregates; 2: hosts the server for the one switch below
    bool hosts = false;         // this switch hosts the server
    std::uint32_t mask = 0;     // expected children: members at level 0, units at level 1, one at level 2
    std::uint32_t present = 0;  // joined children; a rack counts when all of its members have joined
    std::array<Child, ATP_BITMAP_BITS> children;
    std::array<std::unique_ptr<Rack>, ATP_BITMAP_BITS> racks;  // level 1: replaces that child; nullptr: no rack
    bool has_racks = false;
    std::vector<wire::JoiningUnit> units_below;     // level 2: the units that the one child reported
    std::vector<wire::JoiningUnit> complete_units;  // of the last complete(): the units of all members
    std::uint32_t receivers = 0;                    // joined children; each joined member of a rack counts
    std::array<std::uint8_t, max_ranks> child_of_rank{};
    Owner owner;               // whom its place, and the memory of its server, count for
    std::string job_name;      // of the first JOIN that has one
    HostKey first_host;        // of the member that joined first
    std::uint64_t number = 0;  // of the tree's channels, in the order in which they opened
    bool spans_hosts = false;  // children of several hosts have joined
    Time active_at{};          // when all members were there first, and when the last result was sent
    bool has_memory = false;   // hosts: the memory of the server is reserved
    bool opened = false;       // hosts: the server exists
    bool begun = false;        // a member below has received JOINED with `ready`
    bool int32_path = false;   // a JOIN from below said so
    bool int32_lanes = false;  // for this incarnation. hosts: decided once, when the server exists
    wire::Address up;          // !hosts: destination of JOINs
    wire::Address up_data;     // !hosts: destination of packets, the source of the last JOINED; no family: none yet
    bool up_ready = false;     // !hosts: the last JOINED from above had `ready`, and is at most `hold` old
    FailureDetector up_detector{FailureDetector::Peer::answers};  // !hosts: received: a JOINED
    LongPath up_long_path;                                        // !hosts, ready
    bool up_narrow = false;                                       // !hosts: the longest packets do not reach the parent
    Duration up_hold{};           // !hosts: hold time that the last JOINED stated; zero: none
    bool up_lost = false;         // !hosts: the parent failed, and was not heard since
    Time up_next{};               // when to send the next JOIN upwards
    wire::Address up_asker;       // whose JOIN pays for a question to a parent that has not answered; no family: none
    std::uint64_t up_nonce = 0;   // !hosts: of the JOINs upwards
    std::uint64_t up_cookie = 0;  // !hosts: of the last RETRY of the parent; 0: none since the last question
    Time up_retry_next{};         // !hosts: earliest time of the next JOIN that a RETRY causes
    std::array<std::byte, 16> up_ticket{};  // !hosts: of the last JOINED from above that had one
    std::uint32_t up_epoch = 0;             // !hosts: of the last JOIN upwards
    JoinedOrder up_order{};                 // !hosts: of the last JOINED from above
    std::uint64_t group_number = 0;         // in results sent once for all, instead of the token; 0: none are
    BranchFailures failures;                // why the channel is not ready any more
    std::uint32_t missing_units_above = 0;
    std::map<std::uint16_t, std::vector<wire::Statement>> stated;  // by Position::key(): what a child stated last
    std::vector<wire::Statement> stated_below;                     // `stated` of all children together
    std::vector<wire::Statement> stated_above;                     // of all members, as the parent reported them
    bool unreported = false;                                       // children have yet to learn what was stated
    PaceMeter pace;                                                // of the children
    wire::Pace pace_above;                                         // of all members, as the parent reported it
    wire::Address group;     // on the last switch: the group that the terms name; no family: none
    bool asks_path = false;  // on the last switch, without a group: a switch in the path may copy results
    wire::Address once_to;   // where a result goes once for all: the group or a child; no family: nowhere
    bool by_group = false;   // every child receives what goes there: results do
    Time group_next{};       // earliest time of the next JOINED that goes there

    // The branch of this JOIN's channel, without children.
    [[nodiscard]] static Branch of(const wire::Join& join);

    [[nodiscard]] static Position position_of(std::uint8_t level, const wire::JoiningUnit& unit);
    [[nodiscard]] static Position position_of(const wire::Join& join) {
        return position_of(join.level, join.units.front());
    }
    // nullptr: no child has this position.
    [[nodiscard]] const Child* at(const Position& position) const;
    // `reported`: the failed edge of this JOIN, as this switch sees it. `bytes`: its length with padding. `key`: id of
    // its key. True: the statements of the members below changed.
    bool attach(const wire::Join& join, const wire::Address& from, Time now,
                const std::optional<wire::Edge>& reported = std::nullopt, std::size_t bytes = 0, std::uint32_t key = 0);
    void detach(const Position& position);
    // Visits the joined children of these bits, and the joined members of their racks. Without `bits`: of all bits.
    template <class Visit>
    void for_each_child(std::uint32_t bits, Visit&& visit) const;
    template <class Visit>
    void for_each_child(Visit&& visit) const {
        for_each_child(mask, visit);
    }
    // With children that `visit` may change.
    template <class Visit>
    void for_each_child(Visit&& visit) {
        std::as_const(*this).for_each_child(mask, [&](const Child& child) { visit(const_cast<Child&>(child)); });
    }
    // What members stated, as far as this switch knows.
    [[nodiscard]] const std::vector<wire::Statement>& statements() const {
        return stated_above.empty() ? stated_below : stated_above;
    }
    // For which member the others wait; share_percent 0: not known.
    [[nodiscard]] wire::Pace pace_below() const;
    [[nodiscard]] wire::Pace pace_of_all() const { return pace_above.share_percent != 0 ? pace_above : pace_below(); }
    // Requires a pace of this channel. nullopt: it names no rank below this switch.
    [[nodiscard]] std::optional<std::uint16_t> rank_of(const wire::Pace& slowest) const;
    // The child that is this rank or leads to it; nullptr: none has joined.
    [[nodiscard]] const Child* child_to(std::uint16_t rank) const;

    // A child, or the parent's host, which may answer from another port.
    [[nodiscard]] bool is_neighbour(const wire::Address& address) const;
    [[nodiscard]] bool deserted() const;
    [[nodiscard]] bool complete() const { return present == mask && !failures.of_children(); }
    // All members have joined, or had joined before one of them left or failed.
    [[nodiscard]] bool was_complete() const { return !complete_units.empty(); }
    // Packets may flow: all members have joined, and the path to the server is ready.
    [[nodiscard]] bool ready() const { return complete() && (hosts ? opened : up_ready); }
    // Level 0 only: the unit of all children.
    [[nodiscard]] std::uint8_t unit() const;
    // The members of a unit that have not joined; 0 if the unit joins as a whole.
    [[nodiscard]] std::uint32_t missing_members(std::uint8_t unit) const;
    // Requires complete(). The units of all members below, in the form of a JOIN.
    [[nodiscard]] std::vector<wire::JoiningUnit> units() const;
    // The members, for the server; nullopt if their ranks are not 0, 1, ... once each. Requires complete().
    [[nodiscard]] std::optional<protocol::Membership> membership() const;

    // Defined in persist_join_tree.h.
    template <protocol::Archive Archive>
    void persist(Archive& archive);

  private:
    void note_ranks();
    bool note_statements(const Position& position, const std::vector<wire::Statement>& statements);
    [[nodiscard]] Child& take(const Position& position, std::uint32_t rack_mask);
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
