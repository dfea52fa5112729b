// SPDX-License-Identifier: Apache-2.0
#include "control/branch.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "control/statements.h"

namespace atp::control {
namespace {

std::uint8_t lowest(std::uint32_t bits) { return static_cast<std::uint8_t>(std::countr_zero(bits)); }

// The unit of members that joined separately, each with one rank.
template <class Members>
wire::JoiningUnit together(const Members& members, std::uint32_t mask) {
    wire::JoiningUnit unit = members[lowest(mask)].unit;
    unit.members = unit.mask0;
    unit.ranks.clear();
    for (std::uint32_t bits = mask; bits != 0; bits &= bits - 1) {
        unit.ranks.push_back(members[lowest(bits)].unit.ranks.front());
    }
    return unit;
}

}  // namespace

Branch Branch::of(const wire::Join& join) {
    Branch branch;
    branch.terms = join.terms;
    branch.level = join.level;
    branch.mask = join.level == 0 ? join.units.front().mask0 : join.level == 1 ? join.terms.mask1 : 1;
    branch.child_of_rank.fill(no_child);
    return branch;
}

Branch::Position Branch::position_of(std::uint8_t level, const wire::JoiningUnit& unit) {
    if (level == 0) return {.bit = lowest(unit.members)};
    if (level == ATP_LEVELS) return {.bit = 0};
    const bool whole = unit.members == unit.mask0;
    return {.bit = unit.unit, .member = whole ? Position::no_member : lowest(unit.members)};
}

const Branch::Child* Branch::at(const Position& position) const {
    const Rack* const rack = racks[position.bit].get();
    if (!position.in_rack())
        return rack == nullptr && (present >> position.bit & 1U) != 0 ? &children[position.bit] : nullptr;
    return rack != nullptr && (rack->present >> position.member & 1U) != 0 ? &rack->members[position.member] : nullptr;
}

Branch::Child& Branch::take(const Position& position, std::uint32_t rack_mask) {
    if (!position.in_rack()) {
        present |= 1U << position.bit;
        return children[position.bit];
    }
    std::unique_ptr<Rack>& rack = racks[position.bit];
    if (rack == nullptr) rack = std::make_unique<Rack>();
    has_racks = true;
    rack->mask = rack_mask;
    rack->present |= 1U << position.member;
    if (rack->present == rack->mask) present |= 1U << position.bit;
    return rack->members[position.member];
}

bool Branch::attach(const wire::Join& join, const wire::Address& from, Time now,
                    const std::optional<wire::Edge>& reported, std::size_t bytes, std::uint32_t key) {
    const Position position = position_of(join);
    Child& child = take(position, join.units.front().mask0);
    child.address = from;
    child.unit = join.units.front();
    child.receives_group = join.receives_group;
    child.nonce = join.nonce;
    child.epoch = join.epoch;
    child.pace = join.pace;
    child.join_bytes = static_cast<std::uint32_t>(bytes);
    child.key = key;
    child.detector.handle_received(now);
    failures.report_of_child(position.key(), reported);
    if (job_name.empty()) job_name = join.job_name;
    begun = begun || join.begun;
    int32_path = int32_path || join.int32_path;
    if (level == ATP_LEVELS) units_below = join.units;
    for (const wire::JoiningUnit& unit : join.units) {
        for (const std::uint16_t rank : unit.ranks) child_of_rank[rank] = position.bit;
    }
    if (complete()) complete_units = units();
    note_children();
    return note_statements(position, join.statements);
}

bool Branch::note_statements(const Position& position, const std::vector<wire::Statement>& statements) {
    if (statements.empty() || stated[position.key()] == statements) return false;
    stated[position.key()] = statements;
    std::vector<wire::Statement> all;
    for (const auto& [key, of_child] : stated) add_statements(all, of_child);
    const bool changed = all != stated_below;
    stated_below = std::move(all);
    return changed;
}

void Branch::detach(const Position& position) {
    present &= ~(1U << position.bit);
    if (position.in_rack()) {
        Rack& rack = *racks[position.bit];
        rack.present &= ~(1U << position.member);
        if (rack.present == 0) racks[position.bit].reset();
    }
    note_children();
}

// The table of ranks, as the JOINs of all children left it.
void Branch::note_ranks() {
    const auto note = [this](const wire::JoiningUnit& unit, std::uint8_t bit) {
        for (const std::uint16_t rank : unit.ranks) child_of_rank[rank] = bit;
    };
    child_of_rank.fill(no_child);
    for (std::uint32_t bits = mask; bits != 0; bits &= bits - 1) {
        const std::uint8_t bit = lowest(bits);
        note(children[bit].unit, bit);
        if (racks[bit] == nullptr) continue;
        for (const Child& member : racks[bit]->members) note(member.unit, bit);
    }
    for (const wire::JoiningUnit& unit : units_below) note(unit, 0);
}

// A single child that does not receive the group is enough for unicast copies to all children.
void Branch::note_children() {
    by_group = complete();
    receivers = 0;
    spans_hosts = false;
    std::optional<HostKey> first;
    wire::Address first_child;
    bool all_workers = true;
    for_each_child([&](const Child& child) {
        by_group = by_group && child.receives_group;
        if (receivers == 0) first_child = child.address;
        all_workers = all_workers && (level == 0 || child.unit.direct || child.unit.members != child.unit.mask0);
        ++receivers;
        if (spans_hosts) return;
        const HostKey host = HostKey::of(child.address);
        spans_hosts = first.value_or(host) != host;
        first = host;
    });
    once_to = asks_path && all_workers && receivers > 1 ? first_child : group;
    by_group = by_group && once_to.family() != wire::Family::none;
}

const Branch::Child* Branch::child_to(std::uint16_t rank) const {
    if (rank >= max_ranks || child_of_rank[rank] == no_child) return nullptr;
    const std::uint8_t bit = child_of_rank[rank];
    const Child* found = nullptr;
    for_each_child(1U << bit, [&](const Child& child) {
        if (racks[bit] == nullptr || child.unit.ranks.front() == rank) found = &child;
    });
    return found;
}

bool Branch::is_neighbour(const wire::Address& address) const {
    const wire::Address host = address.with_port(0);
    if (!hosts && (up.with_port(0) == host || up_data.with_port(0) == host)) return true;
    bool found = false;
    for_each_child(mask, [&](const Child& child) { found = found || child.address == address; });
    return found;
}

bool Branch::deserted() const {
    return present == 0 && std::ranges::all_of(racks, [](const auto& rack) { return rack == nullptr; });
}

std::uint8_t Branch::unit() const { return children[lowest(present)].unit.unit; }

wire::Pace Branch::pace_below() const {
    constexpr std::uint8_t most_of_the_waiting_percent = 50;
    const auto& last = pace.last();
    if (!last || complete_units.empty()) return {};
    wire::Pace found{.share_percent = last->share_percent,
                     .last_percent = last->last_percent,
                     .unit = level == 0 ? complete_units.front().unit : last->child,
                     .member = level == 0 ? last->child : std::uint8_t{0},
                     .waited_permille = last->waited_permille};
    if (level == 0) return found;
    const auto unit = std::ranges::find(complete_units, found.unit, &wire::JoiningUnit::unit);
    const wire::Pace& inside = children[last->child].pace;
    if (unit != complete_units.end() && std::has_single_bit(unit->members)) {
        found.member = static_cast<std::uint8_t>(lowest(unit->members));
    } else if (inside.unit == found.unit && inside.share_percent > most_of_the_waiting_percent) {
        found.member = inside.member;
    } else {
        found.whole_unit = true;
    }
    return found;
}

std::optional<std::uint16_t> Branch::rank_of(const wire::Pace& slowest) const {
    const auto unit = std::ranges::find(complete_units, slowest.unit, &wire::JoiningUnit::unit);
    if (slowest.share_percent == 0 || slowest.whole_unit || unit == complete_units.end()) return std::nullopt;
    const std::uint32_t below = unit->members & ((1U << slowest.member) - 1);
    const auto index = static_cast<std::size_t>(std::popcount(below));
    if ((unit->members >> slowest.member & 1U) == 0 || index >= unit->ranks.size()) return std::nullopt;
    return unit->ranks[index];
}

std::uint32_t Branch::missing_members(std::uint8_t unit) const {
    if (level == 0) return mask & ~present;
    const Rack* const rack = racks[unit].get();
    return level == 1 && rack != nullptr ? rack->mask & ~rack->present : 0;
}

std::vector<wire::JoiningUnit> Branch::units() const {
    if (level == ATP_LEVELS) return units_below;
    if (level == 0) return {together(children, mask)};
    std::vector<wire::JoiningUnit> units;
    for (std::uint32_t bits = mask; bits != 0; bits &= bits - 1) {
        const std::uint8_t bit = lowest(bits);
        const Rack* const rack = racks[bit].get();
        units.push_back(rack == nullptr ? children[bit].unit : together(rack->members, rack->mask));
    }
    return units;
}

std::optional<protocol::Membership> Branch::membership() const {
    std::vector<protocol::Unit> members;
    for (wire::JoiningUnit& unit : units()) {
        members.push_back({.ranks = std::move(unit.ranks), .direct = unit.direct});
    }
    return protocol::Membership::make(std::move(members));
}

wire::Address address_of(const wire::Endpoint& endpoint) {
    if (endpoint.family == 4) {
        sockaddr_in v4{};
        v4.sin_family = AF_INET;
        v4.sin_port = htons(endpoint.port);
        std::memcpy(&v4.sin_addr, endpoint.host.data(), sizeof v4.sin_addr);
        return wire::Address::from(reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
    }
    if (endpoint.family == 6) {
        sockaddr_in6 v6{};
        v6.sin6_family = AF_INET6;
        v6.sin6_port = htons(endpoint.port);
        std::memcpy(&v6.sin6_addr, endpoint.host.data(), sizeof v6.sin6_addr);
        return wire::Address::from(reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
    }
    return {};
}

wire::Endpoint endpoint_of(const wire::Address& address) {
    wire::Endpoint endpoint;
    endpoint.port = address.port();
    if (address.family() == wire::Family::ipv4) {
        endpoint.family = 4;
        const auto* v4 = reinterpret_cast<const sockaddr_in*>(address.data());
        std::memcpy(endpoint.host.data(), &v4->sin_addr, sizeof v4->sin_addr);
    } else if (address.family() == wire::Family::ipv6) {
        endpoint.family = 6;
        const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address.data());
        std::memcpy(endpoint.host.data(), &v6->sin6_addr, sizeof v6->sin6_addr);
    }
    return endpoint;
}

}  // namespace atp::control
