// SPDX-License-Identifier: Apache-2.0
// Why a tree refuses a JOIN.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "control/join_tree.h"
#include "control/path_mtu_search.h"
#include "wire/message_code.h"

namespace atp::control {
inline namespace ATP_VARIANT {
namespace {

// Name of the first field of the terms that differs between two members; nullptr: none.
const char* difference(const wire::ChannelTerms& a, const wire::ChannelTerms& b) {
    if (a.lanes != b.lanes) return "lanes of a packet";
    if (a.window_log2 != b.window_log2) return "window";
    if (a.audit != b.audit) return "audit lane";
    if (a.aggregators != b.aggregators) return "number of aggregators";
    if (a.first_seq != b.first_seq) return "first sequence number";
    if (a.mask1 != b.mask1) return "units of the job";
    if (a.scale != b.scale) return "scale";
    if (a.server != b.server) return "address of the server";
    if (a.group != b.group) return "multicast group";
    return nullptr;
}

}  // namespace

std::optional<JoinTree::Objection> JoinTree::objection_to(const wire::Join& join, const wire::Address& from,
                                                          const Proof& proof, Time now) {
    if (auto objection = objection_to_sender(join, from, proof)) return objection;
    if (auto objection = objection_to_ranks(join)) return objection;
    const auto job = jobs_.find(key_of(join).of_job());
    if (job != jobs_.end() && job->second.level != join.level) {
        return Objection{
            wire::Refusal::terms,
            // errors.md, refused: switches or racks are mixed up
            fmt::format("this switch serves level {} of the job, not level {}: check --parent of each switch",
                        job->second.level, join.level)};
    }
    const Branch* branch = find(key_of(join));
    return branch == nullptr ? objection_to_new(join, from, proof, now) : objection_to_known(*branch, join, from, now);
}

std::optional<JoinTree::Objection> JoinTree::objection_to_sender(const wire::Join& join, const wire::Address& from,
                                                                 const Proof& proof) const {
    if (config_.tenants != nullptr && config_.tenants->is_revoked(proof.key_id)) {
        return Objection{.reason = wire::Refusal::key,
                         .text = std::string(unknown_text),
                         .why = fmt::format("key {} is revoked", proof.key_id)};
    }
    if (proof.tenant == nullptr) return std::nullopt;
    const Tenant& sender = proof.sender == nullptr ? *proof.tenant : *proof.sender;
    if (!sender.sources.empty() && !contain(sender.sources, from)) {
        return Objection{wire::Refusal::unsupported,
                         fmt::format(
                             // errors.md, refused: the key was copied to a host that the switch's operator did not name
                             "tenant {} may not join from {}: run the rank on one of its hosts, or have the switch's "
                             "operator add this one to sources",
                             sender.name, to_string(from))};
    }
    const auto branch = branches_.find(key_of(join));
    if (branch == branches_.end() || branch->second->owner.tenant == proof.tenant->name) return std::nullopt;
    return of_another_tenant(branch->second->owner);
}

std::optional<JoinTree::Objection> JoinTree::objection_to_ranks(const wire::Join& join) {
    for (const wire::JoiningUnit& unit : join.units) {
        for (const std::uint16_t rank : unit.ranks) {
            if (rank < Branch::max_ranks) continue;
            return Objection{wire::Refusal::place,
                             // errors.md, refused: a number of a rank is too large
                             fmt::format("rank {} is out of range; use ranks up to {}", rank, Branch::max_ranks - 1)};
        }
    }
    return std::nullopt;
}

std::optional<JoinTree::Objection> JoinTree::objection_to_new(const wire::Join& join, const wire::Address& from,
                                                              const Proof& proof, Time now) const {
    const bool needs_parent = join.level == 0 && !join.terms.has_single_unit();
    if (needs_parent && parent_of(join.terms).family() == wire::Family::none) {
        // errors.md, refused: the switches share no root. Or let all ranks name one switch
        return Objection{wire::Refusal::parent, "the job spans several switches: start this one with --parent"};
    }
    if (auto objection = objection_to_targets(join, from, proof.tenant)) return objection;
    const bool would_host = join.level == 2 || (!needs_parent && join.terms.server.family == 0);
    if (join.begun && would_host) {
        return Objection{wire::Refusal::restarted,
                         // errors.md, refused: after a restart, or if it heard nothing from the job for `--hold`, a
                         // switch has lost the partial sums
                         "this switch no longer has the sums of this job (the switch restarted, or the job was silent "
                         "for too long): the job must form again"};
    }
    return would_host ? objection_to_server(join.terms, Owner::of(proof.tenant, from), now) : std::nullopt;
}

// A job may name its own: such as a host that serves a part of the sums.
wire::Address JoinTree::parent_of(const wire::ChannelTerms& terms) const {
    return terms.root.family == 0 ? config_.parent : address_of(terms.root);
}

std::optional<JoinTree::Objection> JoinTree::objection_to_server(const wire::ChannelTerms& terms, const Owner& owner,
                                                                 Time now) const {
    if (config_.server_bytes == 0) {
        return Objection{wire::Refusal::unsupported,
                         // errors.md, refused: it runs with `--no-server`
                         "this switch hosts no parameter servers (--no-server): use colocated or dedicated servers"};
    }
    if (!could_reserve(server_bytes_of(terms), owner, now)) {
        return Objection{wire::Refusal::full, no_memory_for(terms, owner)};
    }
    return std::nullopt;
}

std::optional<JoinTree::Objection> JoinTree::objection_to_known(const Branch& branch, const wire::Join& join,
                                                                const wire::Address& from, Time now) const {
    if (const char* field = difference(branch.terms, join.terms)) {
        return Objection{
            wire::Refusal::terms,
            // errors.md, refused: options differ between ranks
            fmt::format("this member and the others of the job differ in the {}: use equal options on all ranks",
                        field)};
    }
    if (auto objection = objection_to_shape(branch, join)) return objection;
    if (branch.hosts && !branch.opened && join.begun) {
        return Objection{wire::Refusal::restarted,
                         // errors.md, refused: it restarted, and a rank that had begun before joins it again
                         "this switch no longer has the sums of this job: the job must form again"};
    }
    const Branch::Position position = Branch::position_of(join);
    const Branch::Child* const child = branch.at(position);
    if (child == nullptr) return std::nullopt;
    const bool changed = child->unit != join.units.front() || (branch.level == 2 && branch.units_below != join.units);
    // A restarted switch may send from another port. Its token proves that it serves the same incarnation.
    const bool restarted_switch = branch.level != 0 && join.begun && !position.in_rack() && !join.units.front().direct;
    if (changed && (child->address == from || restarted_switch)) {
        return Objection{wire::Refusal::place,
                         // errors.md, refused
                         "this member joined at another position before: form a new communicator"};
    }
    if (child->address != from && !restarted_switch && now - child->detector.received_at() < config_.hold) {
        return Objection{wire::Refusal::place,
                         // errors.md, refused: two processes have one rank, or an earlier one still runs
                         fmt::format("the position of rank {} is taken by {}: end that process, or correct the rank",
                                     join.units.front().ranks.front(), to_string(child->address))};
    }
    return std::nullopt;
}

// Checks that this member expects the same set of members as the others.
std::optional<JoinTree::Objection> JoinTree::objection_to_shape(const Branch& branch, const wire::Join& join) {
    const wire::JoiningUnit& unit = join.units.front();
    const Branch::Position position = Branch::position_of(join);
    const Branch::Rack* const rack = branch.racks[position.bit].get();
    const bool another_rack = rack != nullptr ? !position.in_rack() || rack->mask != unit.mask0
                                              : position.in_rack() && (branch.present >> position.bit & 1U) != 0;
    if (Branch::of(join).mask != branch.mask || another_rack) {
        return Objection{
            wire::Refusal::terms,
            // errors.md, refused: ranks or racks differ between ranks
            "this member and the others of the job expect different members: use equal ranks and racks on all ranks"};
    }
    if (branch.level == 0 && unit.unit != branch.unit()) {
        return Objection{
            wire::Refusal::terms,
            fmt::format(
                // errors.md, refused: switches or racks are mixed up
                "this switch serves unit {} of the job, not unit {}: give each rack its own switch or a --rack name",
                branch.unit(), unit.unit)};
    }
    return std::nullopt;
}

// Only the host of a channel receives the ranks of all members, so only the host can find a rank that two members
// claim.
std::optional<std::string> JoinTree::problem_of_all(const Branch& branch) const {
    if (!branch.complete()) return std::nullopt;
    if (branch.hosts) {
        if (branch.opened || branch.membership()) return std::nullopt;
        // errors.md, refused: two processes have one rank, or a number is left out
        return "the ranks of the job are not 0, 1, ... once each: give each process its own rank";
    }
    if (branch.up_ready) return std::nullopt;
    // It may have to name one failed edge later.
    const std::size_t bytes = bytes_of({.terms = branch.terms, .units = branch.complete_units, .edges = {{}}});
    const std::size_t most = most_join_bytes_upwards(branch);
    if (bytes <= most) return std::nullopt;
    return fmt::format(
        // errors.md, refused: many ranks and short packets
        "a JOIN with all ranks of this job has {} bytes, more than its packets of {}: place the servers on the "
        "switches, "
        "or use longer packets",
        bytes, most);
}

std::size_t JoinTree::most_join_bytes_upwards(const Branch& branch) const {
    const bool has_code = !is_open(config_.tenants.get()) || config_.parent_key != nullptr;
    return most_join_bytes(branch.terms) - (has_code ? wire::longest_code_bytes : 0);
}

std::size_t most_join_bytes(const wire::ChannelTerms& terms) {
    return std::max(packet_bytes_of(terms), least_path_payload_bytes);
}

std::size_t bytes_of(const wire::Join& join) {
    // As long as any message: cleared memory of the longest datagrams would cost each JOIN of a full channel 131 kB.
    std::array<std::byte, wire::longest_message_bytes> room{};
    return wire::encode(join, room);
}

}  // namespace ATP_VARIANT
}  // namespace atp::control
