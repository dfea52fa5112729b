// SPDX-License-Identifier: Apache-2.0
// What holds in every state of a configuration of joining.
#include "check/joining_machines.h"

namespace atp::check::ATP_VARIANT {

std::optional<unsigned> JoiningMachines::rank_at(unsigned unit, unsigned member) const {
    if (unit >= membership_->units() || member >= membership_->unit(unit).ranks.size()) return std::nullopt;
    return membership_->rank_of(unit, member);
}

std::uint16_t JoiningMachines::members_of(std::uint32_t units, std::uint32_t members) const {
    std::uint32_t found = 0;
    for (std::uint16_t rank = 0; rank < membership_->workers(); ++rank) {
        const protocol::Place& place = membership_->place(rank);
        const bool of_unit = (units >> place.unit & 1U) != 0;
        if (of_unit && (members == 0 || (members >> place.member & 1U) != 0)) found |= 1U << rank;
    }
    return static_cast<std::uint16_t>(found);
}

// The nodes that the error of a rank names, as bits.
std::uint16_t JoiningMachines::blamed_by(unsigned node, const control::MemberCause& cause) const {
    using Cause = control::MemberCause::Kind;
    const auto bit = [](unsigned named) { return static_cast<std::uint16_t>(1U << named); };
    switch (cause.kind) {
        case Cause::switch_silent:
        case Cause::switch_ended: return bit(layout_.above(node));
        case Cause::members_missing:
        case Cause::switch_restarted: return members_of(cause.missing_units, cause.missing_members);
        case Cause::edge_failed: break;
        case Cause::refused: return cause.refusal == wire::Refusal::restarted ? bit(nodes() - 1) : std::uint16_t{0};
        default: return 0;
    }
    if (cause.edge.kind == wire::EdgeKind::path_mtu || cause.edge.evidence == wire::Evidence::paused) return 0;
    if (cause.edge.kind != wire::EdgeKind::member) return bit(layout_.node_at(control::address_of(cause.edge.at)));
    const auto rank = rank_at(cause.edge.unit, cause.edge.member);
    return rank ? bit(*rank) : std::uint16_t{0};
}

SystemAssessment JoiningMachines::assess(unsigned /*node*/, const Claims& claims, Summaries after) const {
    if (claims.became_ready) {
        for (unsigned rank = 0; rank < membership_->workers(); ++rank) {
            if (!after[rank]->started) return {.violation = "a rank is ready although another has not started"};
        }
    }
    if (!claims.blames) return {};
    if (claims.blamed == 0) return {.violation = "a rank failed, and names no other"};
    for (unsigned node = 0; node < nodes(); ++node) {
        const bool returned = after[node]->restarted && (claims.lost_sums || configuration_.switches_crash);
        const bool failed = after[node]->crashed || after[node]->left || returned;
        if ((claims.blamed >> node & 1U) != 0 && !failed) {
            return {.violation = "a rank failed, and names a node that did not fail"};
        }
    }
    return {};
}

bool JoiningMachines::settled(Summaries now) const {
    bool any_down = false;
    bool any_runs = false;
    for (unsigned node = 0; node < nodes(); ++node) {
        any_down = any_down || now[node]->crashed || now[node]->left || now[node]->failed;
        any_runs = any_runs || (is_rank(node) && !now[node]->done);
    }
    for (unsigned node = 0; node < nodes(); ++node) {
        if (!is_rank(node) || now[node]->crashed || now[node]->done) continue;
        // Ranks that were never ready wait for the others.
        if (!now[node]->started || now[node]->ready == any_down) return false;
    }
    for (unsigned node = 0; node < nodes(); ++node) {
        if (is_rank(node) || now[node]->crashed) continue;
        if (any_runs ? !any_down && !now[node]->ready : now[node]->held != 0) return false;
    }
    return true;
}

}  // namespace atp::check::ATP_VARIANT
