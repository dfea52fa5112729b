// SPDX-License-Identifier: Apache-2.0
#include "control/join_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "control/breaks.h"
#include "control/ticket.h"
#include "protocol/fragment_record.h"
#include "wire/bytes.h"

namespace atp::control {
inline namespace ATP_VARIANT {
namespace {

using Notice = TreeNotice::Kind;

// 20,000 messages about statements in a second, and 4,000 at once: at most 4 % of a thread.
constexpr Duration cost_of_statement = std::chrono::microseconds(50);
constexpr Duration most_sent = std::chrono::milliseconds(200);
static_assert(Branch::max_ranks * cost_of_statement < most_sent);

}  // namespace

std::uint64_t server_bytes_of(const wire::ChannelTerms& terms) {
    return protocol::FragmentRecords::reserved_bytes(terms.lanes, 1U << terms.window_log2,
                                                     static_cast<unsigned>(std::popcount(terms.mask1)));
}

std::uint32_t packet_bytes_of(const wire::ChannelTerms& terms) {
    return ATP_HEADER_BYTES + terms.lanes * std::uint32_t{ATP_LANE_BYTES};
}

JoinTree::JoinTree(const JoinTreeConfig& config) : config_(config), memory_(config.server_bytes) {
    const bool has_own_room = config_.room == nullptr;
    if (has_own_room) config_.room = std::make_shared<SwitchRoom>(config_.jobs, config_.channels);
    if (has_own_room) config_.room->set_tenants(config_.tenants);
    apply_limits();
    if (config_.pace == nullptr) config_.pace = std::make_shared<QuestionPace>(config_.secret);
}

Branch* JoinTree::find(const ChannelKey& key) {
    if (last_ != nullptr && last_key_ == key) return last_;
    const auto found = branches_.find(key);
    if (found == branches_.end()) return nullptr;
    last_key_ = key;
    last_ = found->second.get();
    return last_;
}

// ------------------------------------------------------------------------------------------------------- From below

void JoinTree::handle_join(const wire::Join& join, const wire::Address& from, Time now, std::size_t bytes,
                           const Proof& proof) {
    ++counters_.joins;
    const ChannelKey key = key_of(join);
    Branch* branch = find(key);
    if (is_old(join, branch)) {
        ++counters_.stale;
        return;
    }
    if (refuse_barred(join, from)) return;
    const bool is_new = branch == nullptr || branch->at(Branch::position_of(join)) == nullptr;
    if (is_new && !departures_.has_room(HostKey::of(from))) {
        ++counters_.deferred;
        return;
    }
    auto objection = objection_to(join, from, proof, now);
    if (!objection && branch == nullptr) {
        auto admission = take_place(join, Owner::of(proof.tenant, from), now);
        if (!admission) {
            ++counters_.deferred;
            return;
        }
        objection = std::move(admission->objection);
    }
    if (objection) return refuse(join, from, proof, *std::move(objection), branch, now);
    if (branch == nullptr) {
        branch = &open_branch(join, now);
        branch->owner = Owner::of(proof.tenant, from);
        branch->first_host = HostKey::of(from);
        branch->number = ++last_branch_;
        branch->job_name = join.job_name;
        report_formed(*branch, from, proof);
    }
    take_member(*branch, join, bytes, from, proof.key_id, now);
}

void JoinTree::take_member(Branch& branch, const wire::Join& join, std::size_t bytes, const wire::Address& from,
                           std::uint32_t key, Time now) {
    const BranchStatus was = status_of(branch);
    const bool was_member = branch.at(Branch::position_of(join)) != nullptr;
    const bool was_complete = branch.was_complete();
    // Only switches report edges in a JOIN.
    const Reporter reporter{.unit = join.units.front().unit, .address = from};
    const bool states = branch.attach(join, from, now, edge_reported_by(join.edges, reporter, now), bytes, key);
    departures_.forget(key_of(join), Branch::position_of(join).key());
    branch.pace.handle_time(now, config_.hold);
    if (!was_member) report_member(Notice::member_joined, branch, *branch.at(Branch::position_of(join)));
    if (states) branch.up_next = std::min(branch.up_next, now);
    if (!branch.hosts && !has_answered(branch, now)) branch.up_asker = from;
    if (auto why = problem_of_all(branch)) {
        ++counters_.refused;
        end_refused(branch,
                    {.job = join.terms.job,
                     .token = join.terms.token,
                     .channel = join.terms.channel,
                     .reason = wire::Refusal::terms,
                     .text = *std::move(why)},
                    now, from);
        return;
    }
    if (!was_complete && branch.was_complete()) {
        branch.active_at = now;
        admit(branch);
    }
    if (open_server(branch, now)) return;
    protect(branch);
    ascend(branch, now);
    if (settle(branch, was, now)) {
        branch.group_next = now;
    } else {
        if (states) report_statements(branch, now);
        if (!states || branch.unreported) notify(branch, *branch.at(Branch::position_of(join)));
    }
    notify_group(branch, from, now);
    wake_at(next_look(branch, now));
}

bool JoinTree::is_old(const wire::Join& join, const Branch* branch) const {
    const Branch::Position position = Branch::position_of(join);
    if (const Branch::Child* const child = branch == nullptr ? nullptr : branch->at(position)) {
        return child->nonce == join.nonce && join.epoch <= child->epoch;
    }
    return !ATP_CONTROL_BREAK(old_join_returns) &&
           departures_.is_old(key_of(join), position.key(), join.nonce, join.epoch);
}

Branch& JoinTree::open_branch(const wire::Join& join, Time now) {
    const ChannelKey key = key_of(join);
    auto branch = std::make_unique<Branch>(Branch::of(join));
    const bool ends_here = join.level >= 1 || join.terms.has_single_unit();
    if (join.level == 2 || (ends_here && join.terms.server.family == 0)) {
        branch->hosts = true;
    } else {
        branch->up = ends_here ? address_of(join.terms.server) : parent_of(join.terms);
        branch->up_next = now;
        branch->up_epoch = last_up_epoch_;
        branch->up_nonce = up_nonce_of(key);
    }
    if (ends_here && join.level != ATP_LEVELS) {
        branch->group = address_of(join.terms.group);
        branch->asks_path = config_.asks_path && branch->group.family() == wire::Family::none;
        if (branch->asks_path || branch->group.family() != wire::Family::none)
            branch->group_number = group_number_of(key);
    }
    TreeJob& job = jobs_[key.of_job()];
    job.level = join.level;
    ++job.channels;
    return *(branches_[key] = std::move(branch));
}

void JoinTree::admit(const Branch& branch) {
    events_.push_back({.kind = TreeEvent::Kind::admitted,
                       .job = branch.terms.job,
                       .token = branch.terms.token,
                       .channel = branch.terms.channel,
                       .level = branch.level});
}

std::uint64_t JoinTree::group_number_of(const ChannelKey& key) const {
    std::array<std::byte, 14> message{};
    wire::store_u32(message.data(), key.job);
    wire::store_u64(message.data() + 4, key.token);
    wire::store_u16(message.data() + 12, key.channel);
    return std::max<std::uint64_t>(siphash(config_.secret, message), 1);
}

bool JoinTree::open_server(Branch& branch, Time now) {
    if (!branch.complete() || !branch.hosts || branch.opened) return false;
    const std::uint64_t needed = server_bytes_of(branch.terms);
    if (!branch.has_memory && !reserve(needed, branch.owner, now)) {
        could_not_open(key_of(branch.terms), no_memory_for(branch.terms, branch.owner));
        return true;
    }
    branch.has_memory = true;
    note_memory();
    events_.push_back({.kind = TreeEvent::Kind::opened,
                       .job = branch.terms.job,
                       .token = branch.terms.token,
                       .channel = branch.terms.channel,
                       .level = branch.level});
    return false;
}

void JoinTree::opened(const ChannelKey& key) {
    Branch* branch = find(key);
    if (branch == nullptr) return;
    branch->opened = true;
    branch->int32_lanes = branch->int32_path;
    report(Notice::job_ready, *branch);
    notify_all(*branch);
}

void JoinTree::handle_leave(const wire::Leave& leave, const wire::Address& from, Time now) {
    Branch* branch = find(key_of(leave));
    const bool known = branch != nullptr;
    Branch::Position position;
    if (known && branch->level == 0) position.bit = leave.member;
    if (known && branch->level == 1) {
        position.bit = leave.unit;
        if (branch->racks[leave.unit] != nullptr) position.member = leave.member;
    }
    const Branch::Child* const child = known ? branch->at(position) : nullptr;
    const bool is_own =
        child != nullptr && child->address == from &&
        ((child->nonce == leave.nonce && leave.epoch > child->epoch) || ATP_CONTROL_BREAK(leave_of_another));
    if (!is_own) {
        const bool old = departures_.is_old(key_of(leave), position.key(), leave.nonce, leave.epoch);
        ++(old ? counters_.stale : counters_.forged);
        return;
    }
    ++counters_.left;
    report_member(Notice::member_left, *branch, *child);
    const wire::Edge left = edge_to(*branch, *child, wire::Evidence::left, {});
    const Reporter reporter{.unit = leave.unit, .address = from, .is_worker = left.kind == wire::EdgeKind::member};
    const wire::Edge edge = edge_reported_by(leave.edges, reporter, now).value_or(left);
    detach(*branch, position, leave.epoch, edge, now);
}

// ------------------------------------------------------------------------------------------------------------ Others

// Reports the missing members of the child's own unit if this switch knows them, otherwise the missing units.
void JoinTree::notify(Branch& branch, const Branch::Child& child) {
    wire::Joined joined = joined_of(branch);
    joined.nonce = child.nonce;
    joined.epoch = child.epoch;
    const std::uint8_t unit = child.unit.unit;
    joined.missing_members = branch.missing_members(unit);
    if (joined.missing_members != 0) joined.missing_units = 1U << unit;
    outbox_.push_back({child.address, joined, {}, child.join_bytes});
}

wire::Joined JoinTree::joined_of(const Branch& branch) {
    wire::Joined joined{.job = branch.terms.job, .token = branch.terms.token, .channel = branch.terms.channel};
    joined.number = ++number_;
    joined.group_number = branch.group_number;
    joined.hold_ms = static_cast<std::uint32_t>(std::chrono::ceil<std::chrono::milliseconds>(config_.hold).count());
    if (const auto edge = branch.failures.first(); edge && !ATP_CONTROL_BREAK(cause_not_sent_down))
        joined.edges = {*edge};
    joined.pace = branch.pace_of_all();
    joined.statements = branch.statements();
    joined.ready = branch.ready();
    if (branch.ready()) joined.ticket = ticket_of(config_.ticket_key, key_of(branch.terms));
    if (ATP_CONTROL_BREAK(ready_without_all))
        joined.ready = joined.ready || std::popcount(branch.mask) == std::popcount(branch.present) + 1;
    if (ATP_CONTROL_BREAK(ready_before_parent)) joined.ready = joined.ready || (!branch.hosts && branch.complete());
    joined.int32_lanes = branch.int32_lanes;
    joined.missing_units = branch.level == 0 ? branch.missing_units_above : branch.mask & ~branch.present;
    return joined;
}

// Each member reports in its next JOIN whether it receives what is sent once for all. Until all do, the group gets a
// JOINED after a JOIN, at most every `impatient`. Then it gets one at most every `refresh`, so that members notice a
// loss. Without a group, a child gets it as often as it joins, and the others if a switch in the path copies it.
void JoinTree::notify_group(Branch& branch, const wire::Address& near, Time now) {
    if (branch.once_to.family() != near.family() || now < branch.group_next) return;
    // Any host may listen to a group, so this message has no token.
    wire::Joined joined = joined_of(branch);
    joined.token = branch.group_number;
    joined.ticket = {};
    joined.edges.clear();
    joined.statements.clear();
    outbox_.push_back({branch.once_to, std::move(joined), near});
    const Duration until_all_do = branch.asks_path ? refresh_of(config_.hold) : config_.impatient;
    branch.group_next = now + (branch.by_group ? timing.refresh : until_all_do);
}

void JoinTree::notify_all(Branch& branch) {
    branch.for_each_child([&](const Branch::Child& child) { notify(branch, child); });
}

void JoinTree::report_statements(Branch& branch, Time now) {
    const Duration cost = branch.receivers * cost_of_statement;
    branch.unreported = !statements_sent_.has(cost, most_sent, now);
    if (branch.unreported) return wake_at(statements_sent_.ready_at(cost, most_sent));
    statements_sent_.charge(cost, now);
    notify_all(branch);
}

void JoinTree::close(Branch& branch, std::string why, const wire::Address& culprit) {
    const wire::ChannelTerms terms = branch.terms;
    last_up_epoch_ = std::max(last_up_epoch_, branch.up_epoch + 1);
    if (!why.empty()) report(Notice::job_failed, branch, culprit, std::move(why));
    report(Notice::job_left, branch);
    if (!branch.hosts && branch.up_detector.received_at() != Time{}) {
        const wire::JoiningUnit& unit = branch.children[static_cast<unsigned>(std::countr_zero(branch.mask))].unit;
        wire::Leave leave{.nonce = branch.up_nonce,
                          .job = terms.job,
                          .token = terms.token,
                          .channel = terms.channel,
                          .epoch = ++branch.up_epoch,
                          .unit = unit.unit,
                          .member = 0};
        const auto edge = branch.failures.first_own();
        if (edge && edge->evidence != wire::Evidence::left) leave.edges = {*edge};
        outbox_.push_back({branch.up, std::move(leave)});
    }
    const bool had_memory = branch.has_memory;
    if (had_memory) memory_.release(server_bytes_of(terms));
    const ChannelKey key = key_of(terms);
    const auto job = jobs_.find(key.of_job());
    const bool last = --job->second.channels == 0;
    if (last) jobs_.erase(job);
    events_.push_back({.kind = TreeEvent::Kind::closed,
                       .job = terms.job,
                       .token = terms.token,
                       .channel = terms.channel,
                       .level = branch.level,
                       .last_of_job = last});
    last_ = nullptr;
    const wire::Address group = branch.group;
    branches_.erase(key);
    if (had_memory) note_memory();
    const bool shared = std::ranges::any_of(branches_, [&](const auto& other) { return other.second->group == group; });
    if (!shared) events_.back().group = group;
    config_.room->give_back(key.of_job());
}

void JoinTree::handle_timeout(Time now) {
    if (now < next_sweep_) return;
    excuse_pause(now);
    next_sweep_ = never;
    if (config_.room->has_ending()) end_marked(now);
    std::vector<Branch*> branches;
    branches.reserve(branches_.size());
    for (const auto& [key, branch] : branches_) branches.push_back(branch.get());
    for (Branch* branch : branches) {
        examine_parent(*branch, now);
        if (branch->unreported) report_statements(*branch, now);
        ascend(*branch, now);
        if (!examine_children(*branch, now)) wake_at(next_look(*branch, now));
    }
    send_repeats(now);
    unbar_expired(now);
    // Whoever joins and leaves in a loop must not cause as many sweeps.
    wake_at(std::max(departures_.forget_expired(now), now + timing.hurry));
}

void JoinTree::repeat_last(Time now) {
    repeats_.push_back({.transmit = outbox_.back(), .next = now + timing.hurry});
    wake_at(repeats_.back().next);
}

void JoinTree::send_repeats(Time now) {
    for (Repeat& repeat : repeats_) {
        if (repeat.next <= now) {
            outbox_.push_back(repeat.transmit);
            repeat.next = now + timing.hurry;
            --repeat.left;
        }
        if (repeat.left != 0) wake_at(repeat.next);
    }
    std::erase_if(repeats_, [](const Repeat& repeat) { return repeat.left == 0; });
}

void JoinTree::wake_at(Time when) { next_sweep_ = std::min(next_sweep_, when); }

std::optional<JoinTree::Transmit> JoinTree::poll_transmit() {
    if (outbox_.empty()) return std::nullopt;
    Transmit next = std::move(outbox_.front());
    outbox_.pop_front();
    return next;
}

std::optional<TreeEvent> JoinTree::poll_event() {
    if (events_.empty()) return std::nullopt;
    const TreeEvent next = events_.front();
    events_.pop_front();
    return next;
}

}  // namespace ATP_VARIANT
}  // namespace atp::control
