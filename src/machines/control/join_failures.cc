// SPDX-License-Identifier: Apache-2.0
// How a tree finds out that a neighbour failed, and tells the others which edge it was.
#include <algorithm>
#include <bit>
#include <chrono>
#include <vector>

#include "control/breaks.h"
#include "control/gatekeeper.h"
#include "control/join_tree.h"
#include "control/quoted_channel.h"

namespace atp::control {
inline namespace ATP_VARIANT {
namespace {

using State = FailureDetector::State;

std::uint32_t milliseconds_of(Duration time) {
    const auto count = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(count, 0, UINT32_MAX));
}

wire::Evidence evidence_of(State state) {
    return state == State::closed ? wire::Evidence::closed : wire::Evidence::silence;
}

}  // namespace

// A worker is named by its place, a switch by its address too.
wire::Edge JoinTree::edge_to(const Branch& branch, const Branch::Child& child, wire::Evidence evidence,
                             Duration silent) {
    // The one child at level 2 is the last switch, whatever unit it names first.
    const bool worker =
        branch.level == 0 || (branch.level == 1 && (child.unit.direct || Branch::position_of(1, child.unit).in_rack()));
    return {.kind = worker ? wire::EdgeKind::member : wire::EdgeKind::leaf,
            .evidence = evidence,
            .unit = child.unit.unit,
            .member = worker && !ATP_CONTROL_BREAK(names_another)
                          ? static_cast<std::uint8_t>(std::countr_zero(child.unit.members))
                          : std::uint8_t{0},
            .silent_ms = milliseconds_of(silent),
            .at = endpoint_of(child.address)};
}

wire::Edge JoinTree::edge_to_parent(const Branch& branch, wire::Evidence evidence, Duration silent) {
    const bool is_server = branch.level != 0 || branch.terms.has_single_unit();
    return {.kind = is_server ? wire::EdgeKind::server : wire::EdgeKind::parent,
            .evidence = evidence,
            .unit = branch.complete_units.empty() ? std::uint8_t{0} : branch.complete_units.front().unit,
            .silent_ms = milliseconds_of(silent),
            .at = endpoint_of(branch.up)};
}

// A member that leaves in order is no failure: its notice is member_left.
void JoinTree::report_new_cause(const Branch& branch, const BranchStatus& before) {
    const auto cause = branch.failures.first();
    if (cause && !before.cause && cause->evidence != wire::Evidence::left) report_failure(branch, *cause);
}

bool JoinTree::settle(Branch& branch, const BranchStatus& before, Time now) {
    if (branch.ready()) branch.failures.clear();
    if (branch.ready() && !before.ready) report(TreeNotice::Kind::job_ready, branch);
    report_new_cause(branch, before);
    if (branch.failures.first_own() != before.own_cause) {
        branch.up_next = std::min(branch.up_next, now);
        ascend(branch, now);
    }
    const bool changed = branch.ready() != before.ready || branch.failures.first() != before.cause;
    if (changed) notify_all(branch);
    return changed;
}

// An incarnation cannot continue without one of its members. The other members, and the parent, are therefore notified
// which edge failed.
bool JoinTree::detach(Branch& branch, const Branch::Position& position, std::uint32_t epoch, const wire::Edge& edge,
                      Time now) {
    const BranchStatus was = status_of(branch);
    const Branch::Child removed = *branch.at(position);
    branch.detach(position);
    // Whoever recorded a JOIN with a right code may repeat it while its cookie is valid.
    const bool open = is_open(config_.tenants.get());
    const Time until = now + (open ? config_.hold : 2 * Gatekeeper::short_period(config_.hold));
    departures_.note(key_of(branch.terms), position.key(), HostKey::of(removed.address), removed.nonce, epoch, until);
    wake_at(until);
    branch.failures.note_child(position.key(), edge);
    // It may hear this switch, although this switch does not hear it.
    if (edge.evidence == wire::Evidence::silence) {
        notify(branch, removed);
        repeat_last(now);
    }
    if (branch.deserted()) {
        const bool has_cause = !branch.hosts && edge.evidence != wire::Evidence::left;
        report_new_cause(branch, was);
        const std::size_t before_leave = outbox_.size();
        close(branch);
        if (has_cause && outbox_.size() != before_leave) repeat_last(now);
        return true;
    }
    if (!settle(branch, was, now)) notify_all(branch);
    return false;
}

void JoinTree::handle_send_error(const wire::SendError& error, Time now) {
    const auto quoted = quoted_channel(error.quote());
    Branch* const branch = quoted ? find(*quoted) : nullptr;
    if (!error.by_network || branch == nullptr) {
        ++counters_.stray_errors;
        return;
    }
    if (error.kind != wire::SendError::Kind::port_unreachable) return;
    bool known = false;
    if (!branch->hosts && (error.to == branch->up || error.to == branch->up_data)) {
        known = true;
        if (branch->up_detector.handle_refused(now)) branch->up_next = now;
        ascend(*branch, now);
    }
    branch->for_each_child([&](Branch::Child& child) {
        if (child.address != error.to) return;
        known = true;
        if (child.detector.handle_refused(now)) ask(*branch, child, now);
    });
    if (!known) ++counters_.stray_errors;
    wake_at(next_look(*branch, now));
}

// If this process did not run for a while, it read no message in that time. The pause is therefore no silence of others
// (H80).
void JoinTree::excuse_pause(Time now) {
    note_pause(now);
    const Duration pause = now - next_sweep_;
    if (next_sweep_ == never || pause <= timing.pause_slack) return;
    for (const auto& [key, branch] : branches_) {
        branch->up_detector.handle_own_pause(pause);
        branch->up_long_path.handle_own_pause(pause);
        branch->for_each_child([&](Branch::Child& child) { child.detector.handle_own_pause(pause); });
    }
}

// The messages that arrived meanwhile may be handled before handle_timeout().
void JoinTree::note_pause(Time now) {
    if (next_sweep_ != never && now - next_sweep_ > timing.pause_slack) pause_ = {now - next_sweep_, now};
}

// A leaf also passes on what its members report about the leaf: a pause of this switch explains nothing of that.
wire::Edge JoinTree::seen_here(const wire::Edge& edge, const Reporter& by, Time now) {
    note_pause(now);
    const bool of_member =
        by.is_worker && edge.kind == wire::EdgeKind::member && edge.evidence == wire::Evidence::one_direction;
    const bool of_leaf = edge.kind == wire::EdgeKind::parent && edge.evidence == wire::Evidence::silence;
    const bool explains = now - pause_.ended < config_.hold && milliseconds_of(2 * pause_.lasted) >= edge.silent_ms;
    if ((!of_member && !of_leaf) || pause_.lasted == Duration::zero() || !explains) return edge;
    return {.kind = wire::EdgeKind::leaf,
            .evidence = wire::Evidence::paused,
            .unit = edge.unit,
            .silent_ms = milliseconds_of(pause_.lasted),
            .at = edge.at};
}

// A switch that does not hear this one names it as the silent parent. This switch hears the other, so the edge between
// them loses one direction, if this process ran. If the other's host had a report, an earlier process of this switch
// ended. A worker that names a parent means that of this switch: it learnt that here.
std::optional<wire::Edge> JoinTree::edge_reported_by(const std::vector<wire::Edge>& edges, const Reporter& by,
                                                     Time now) {
    if (edges.empty()) return std::nullopt;
    wire::Edge edge = seen_here(edges.front(), by, now);
    if (!by.is_worker && edge.kind == wire::EdgeKind::parent && edge.evidence != wire::Evidence::closed) {
        edge.kind = wire::EdgeKind::leaf;
        if (edge.evidence == wire::Evidence::silence) edge.evidence = wire::Evidence::one_direction;
        edge.unit = by.unit;
        edge.at = endpoint_of(by.address);
    }
    return edge;
}

void JoinTree::ask(Branch& branch, Branch::Child& child, Time now) {
    notify(branch, child);
    child.asked_at = now;
    child.detector.handle_asked(now);
}

bool JoinTree::examine_children(Branch& branch, Time now) {
    const Duration late = refresh_of(config_.hold) + timing.late;
    struct Failure {
        Branch::Position position;
        std::uint32_t epoch = 0;
        wire::Edge edge;
    };
    std::vector<Failure> failures;
    branch.for_each_child([&](Branch::Child& child) {
        const State state =
            child.detector.assess(now, ATP_CONTROL_BREAK(silent_at_once) ? config_.hold / 2 : config_.hold);
        if (ATP_CONTROL_BREAK(keeps_lost_member)) return;
        if (state != State::alive) {
            ++(state == State::closed ? counters_.closed : counters_.expired);
            report_member(TreeNotice::Kind::member_lost, branch, child, to_string(evidence_of(state)));
            failures.push_back({Branch::position_of(branch.level, child.unit), child.epoch,
                                edge_to(branch, child, evidence_of(state), child.detector.lasted(now))});
        } else if (now - child.detector.received_at() >= late && now - child.asked_at >= timing.hurry) {
            ask(branch, child, now);
        }
    });
    return std::ranges::any_of(failures, [&](const Failure& failure) {
        return detach(branch, failure.position, failure.epoch, failure.edge, now);
    });
}

void JoinTree::examine_parent(Branch& branch, Time now) {
    if (branch.hosts || branch.up_lost || !branch.up_ready) return;
    const Duration hold = hold_of_parent(branch);
    const State state = branch.up_detector.assess(now, hold);
    const bool narrow =
        state == State::alive && branch.up_long_path.is_narrow(branch.up_detector.received_at(), hold, now);
    if ((state == State::alive && !narrow) || ATP_CONTROL_BREAK(ignores_parent_loss)) return;
    const wire::Evidence evidence = narrow ? wire::Evidence::too_long : evidence_of(state);
    const Duration lasted = narrow ? branch.up_long_path.lasted(now) : branch.up_detector.lasted(now);
    const BranchStatus was = status_of(branch);
    report(TreeNotice::Kind::parent_lost, branch, branch.up, std::string(to_string(evidence)));
    branch.failures.note_parent(edge_to_parent(branch, evidence, lasted));
    branch.up_narrow = narrow;
    branch.up_lost = !narrow;
    branch.up_ready = false;
    branch.missing_units_above = branch.terms.mask1;
    settle(branch, was, now);
}

Time JoinTree::next_look(const Branch& branch, Time now) const {
    Time next = now + config_.hold;
    const Duration late = refresh_of(config_.hold) + timing.late;
    branch.for_each_child([&](const Branch::Child& child) {
        const Time overdue = child.detector.received_at() + late;
        next = std::min(
            {next, std::max(overdue, child.asked_at + timing.hurry), child.detector.poll_timeout(config_.hold)});
    });
    if (branch.hosts) return std::max(next, now + std::chrono::milliseconds(1));
    const bool may_ask = has_answered(branch, now) || branch.up_asker.family() != wire::Family::none;
    if (may_ascend(branch) && may_ask) next = std::min(next, branch.up_next);
    if (branch.up_ready) next = std::min(next, branch.up_detector.poll_timeout(hold_of_parent(branch)));
    return std::max(next, now + std::chrono::milliseconds(1));
}

}  // namespace ATP_VARIANT
}  // namespace atp::control
