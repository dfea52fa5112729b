// SPDX-License-Identifier: Apache-2.0
#include "control/join_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "numeric/exact_sum.h"

namespace atp::control {

std::uint64_t server_bytes_of(const wire::ChannelTerms& terms) {
    if (terms.protocol != wire::ChannelProtocol::atp) return 0;
    // A lane: integer sum, float sum, result. A record: its masks and its state.
    constexpr std::uint64_t lane_bytes = sizeof(std::int64_t) + sizeof(numeric::ExactLane) + sizeof(float);
    constexpr std::uint64_t record_bytes = 3 * ATP_BITMAP_BITS * sizeof(std::uint32_t) + 128;
    return (std::uint64_t{2} << terms.window_log2) * (terms.lanes * lane_bytes + record_bytes);
}

JoinTree::JoinTree(const JoinTreeConfig& config) : config_(config) {
    if (config_.room == nullptr) config_.room = std::make_shared<SwitchRoom>(config_.jobs, config_.channels);
}

Branch* JoinTree::find(std::uint32_t job, std::uint16_t channel) {
    const Key key = key_of(job, channel);
    if (last_ != nullptr && last_key_ == key) return last_;
    const auto found = branches_.find(key);
    if (found == branches_.end()) return nullptr;
    last_key_ = key;
    last_ = found->second.get();
    return last_;
}

// ------------------------------------------------------------------------------------------------------- From below

void JoinTree::handle_join(const wire::Join& join, const wire::Address& from, Time now) {
    ++counters_.joins;
    auto objection = objection_to(join, from, now);
    Branch* branch = find(join.terms.job, join.terms.channel);
    if (!objection && branch == nullptr) objection = take_room(join.terms.job);
    if (objection) {
        ++counters_.refused;
        outbox_.push_back({from, wire::Refused{.job = join.terms.job,
                                               .token = join.terms.token,
                                               .channel = join.terms.channel,
                                               .reason = objection->reason,
                                               .text = std::move(objection->text)}});
        return;
    }
    if (branch == nullptr) branch = &open_branch(join, now);
    const bool was_ready = branch->ready();
    branch->attach(join, from, now);
    if (contradicts_itself(*branch)) {
        ++counters_.refused;
        refuse_all(*branch,
                   {.job = join.terms.job,
                    .token = join.terms.token,
                    .channel = join.terms.channel,
                    .reason = wire::Refusal::terms,
                    .text = "the ranks of the job are not 0, 1, ... once each: give each process its own rank"});
        close(*branch);
        return;
    }
    open_server(*branch);
    ascend(*branch, now);
    // This JOIN made the branch ready: notify every child, not only the sender.
    if (branch->ready() && !was_ready) {
        notify_all(*branch);
        branch->group_next = now;
    } else {
        notify(*branch, *branch->at(Branch::position_of(join)));
    }
    notify_group(*branch, from, now);
    wake_at(now + (branch->ready() ? config_.refresh : config_.impatient));
}

Branch& JoinTree::open_branch(const wire::Join& join, Time now) {
    auto branch = std::make_unique<Branch>(Branch::of(join));
    const bool ends_here = join.level >= 1 || join.terms.has_single_unit();
    if (join.level == 2 || (ends_here && join.terms.server.family == 0)) {
        branch->hosts = true;
        server_bytes_ += server_bytes_of(join.terms);
    } else {
        branch->up = ends_here ? address_of(join.terms.server) : config_.parent;
        branch->up_next = now;
    }
    if (ends_here && join.level != ATP_LEVELS) branch->group = address_of(join.terms.group);
    TreeJob& job = jobs_[join.terms.job];
    job.token = join.terms.token;
    job.level = join.level;
    ++job.channels;
    events_.push_back({.kind = TreeEvent::Kind::admitted,
                       .job = join.terms.job,
                       .token = join.terms.token,
                       .channel = join.terms.channel,
                       .level = join.level,
                       .protocol = join.terms.protocol});
    return *(branches_[key_of(join.terms.job, join.terms.channel)] = std::move(branch));
}

// Only the host of a channel receives the ranks of all members, so only the host can find a rank that two members
// claim.
bool JoinTree::contradicts_itself(const Branch& branch) {
    return branch.complete() && branch.hosts && !branch.opened && !branch.membership();
}

void JoinTree::open_server(const Branch& branch) {
    if (!branch.complete() || !branch.hosts || branch.opened) return;
    events_.push_back({.kind = TreeEvent::Kind::opened,
                       .job = branch.terms.job,
                       .token = branch.terms.token,
                       .channel = branch.terms.channel,
                       .level = branch.level,
                       .protocol = branch.terms.protocol});
}

void JoinTree::opened(std::uint32_t job, std::uint16_t channel, std::uint8_t stream) {
    Branch* branch = find(job, channel);
    if (branch == nullptr) return;
    branch->opened = true;
    branch->stream = stream;
    notify_all(*branch);
}

void JoinTree::could_not_open(std::uint32_t job, std::uint16_t channel, std::string why) {
    Branch* branch = find(job, channel);
    if (branch == nullptr) return;
    ++counters_.refused;
    refuse_all(*branch, {.job = job,
                         .token = branch->terms.token,
                         .channel = channel,
                         .reason = wire::Refusal::full,
                         .text = std::move(why)});
    close(*branch);
}

void JoinTree::handle_leave(const wire::Leave& leave, const wire::Address& from, Time) {
    Branch* branch = find(leave.job, leave.channel);
    const bool known = branch != nullptr && branch->terms.token == leave.token;
    Branch::Position position;
    if (known && branch->level == 0) position.bit = leave.member;
    if (known && branch->level == 1) {
        position.bit = leave.unit;
        if (branch->racks[leave.unit] != nullptr) position.member = leave.member;
    }
    const Branch::Child* const child = known ? branch->at(position) : nullptr;
    if (child == nullptr || child->address != from) {
        ++counters_.forged;
        return;
    }
    ++counters_.left;
    detach(*branch, position);
}

// An incarnation cannot continue without one of its members. The other members are therefore notified which member is
// missing.
bool JoinTree::detach(Branch& branch, const Branch::Position& position) {
    branch.detach(position);
    const bool empty = branch.deserted();
    if (empty) {
        close(branch);
    } else {
        notify_all(branch);
    }
    return empty;
}

// ------------------------------------------------------------------------------------------------------- From above

void JoinTree::handle_joined(const wire::Joined& joined, const wire::Address& from, Time now) {
    Branch* branch = find(joined.job, joined.channel);
    if (branch == nullptr || branch->hosts || branch->terms.token != joined.token) {
        ++counters_.forged;
        return;
    }
    const bool was_ready = branch->ready();
    branch->up_received_at = now;
    branch->up_data = from;
    branch->up_ready = joined.ready;
    branch->missing_units_above = joined.missing_units;
    if (branch->ready() != was_ready) notify_all(*branch);
}

void JoinTree::handle_refused(const wire::Refused& refused, const wire::Address& from) {
    Branch* branch = find(refused.job, refused.channel);
    if (branch == nullptr || branch->hosts || branch->terms.token != refused.token) {
        ++counters_.forged;
        return;
    }
    wire::Refused passed_on = refused;
    passed_on.text = fmt::format("{} (sent by {})", refused.text, to_string(from));
    refuse_all(*branch, passed_on);
    close(*branch);
}

void JoinTree::refuse_all(const Branch& branch, const wire::Refused& refused) {
    branch.for_each_child([&](const Branch::Child& child) { outbox_.push_back({child.address, refused}); });
}

wire::Join JoinTree::join_upwards(const Branch& branch) {
    return {.terms = branch.terms,
            .level = static_cast<std::uint8_t>(branch.level == 0 && !branch.terms.has_single_unit() ? 1 : ATP_LEVELS),
            .begun = branch.begun || branch.up_ready,
            .units = branch.units()};
}

// Sends a JOIN upwards if all children have joined and the next JOIN is due.
void JoinTree::ascend(Branch& branch, Time now) {
    if (branch.hosts || !branch.complete() || branch.up_next > now) return;
    outbox_.push_back({branch.up, join_upwards(branch)});
    branch.up_next = now + (branch.up_ready ? config_.refresh : config_.impatient);
}

// ------------------------------------------------------------------------------------------------------------ Others

// Reports the missing members of the child's own unit if this switch knows them, otherwise the missing units.
void JoinTree::notify(const Branch& branch, const Branch::Child& child) {
    wire::Joined joined = joined_of(branch);
    const std::uint8_t unit = child.unit.unit;
    joined.missing_members = branch.missing_members(unit);
    if (joined.missing_members != 0) joined.missing_units = 1U << unit;
    outbox_.push_back({child.address, joined});
}

wire::Joined JoinTree::joined_of(const Branch& branch) {
    wire::Joined joined{.job = branch.terms.job, .token = branch.terms.token, .channel = branch.terms.channel};
    joined.ready = branch.ready();
    joined.stream = branch.stream;
    joined.missing_units = branch.level == 0 ? branch.missing_units_above : branch.mask & ~branch.present;
    return joined;
}

// Each member reports in its next JOIN whether it receives the group. Until all do, the group gets a JOINED after a
// JOIN, at most every `impatient`. Then it gets one at most every `refresh`, so that members notice a loss.
void JoinTree::notify_group(Branch& branch, const wire::Address& near, Time now) {
    if (branch.group.family() != near.family() || now < branch.group_next) return;
    outbox_.push_back({branch.group, joined_of(branch), near});
    branch.group_next = now + (branch.by_group ? config_.refresh : config_.impatient);
}

void JoinTree::notify_all(const Branch& branch) {
    branch.for_each_child([&](const Branch::Child& child) { notify(branch, child); });
}

void JoinTree::close(Branch& branch) {
    const wire::ChannelTerms terms = branch.terms;
    if (!branch.hosts && branch.up_received_at != Time{}) {
        const wire::JoiningUnit& unit = branch.children[static_cast<unsigned>(std::countr_zero(branch.mask))].unit;
        outbox_.push_back(
            {branch.up,
             wire::Leave{
                 .job = terms.job, .token = terms.token, .channel = terms.channel, .unit = unit.unit, .member = 0}});
    }
    if (branch.hosts) server_bytes_ -= server_bytes_of(terms);
    const auto job = jobs_.find(terms.job);
    const bool last = --job->second.channels == 0;
    if (last) jobs_.erase(job);
    events_.push_back({.kind = TreeEvent::Kind::closed,
                       .job = terms.job,
                       .token = terms.token,
                       .channel = terms.channel,
                       .level = branch.level,
                       .protocol = terms.protocol,
                       .last_of_job = last});
    last_ = nullptr;
    branches_.erase(key_of(terms.job, terms.channel));
    config_.room->give_back(terms.job);
}

void JoinTree::handle_timeout(Time now) {
    if (now < next_sweep_) return;
    next_sweep_ = never;
    std::vector<Branch*> branches;
    branches.reserve(branches_.size());
    for (const auto& [key, branch] : branches_) branches.push_back(branch.get());
    for (Branch* branch : branches) {
        std::vector<Branch::Position> silent;
        branch->for_each_child([&](const Branch::Child& child) {
            if (now - child.refreshed > config_.hold) silent.push_back(Branch::position_of(branch->level, child.unit));
        });
        counters_.expired += silent.size();
        if (!branch->hosts && branch->up_ready && now - branch->up_received_at > config_.hold) {
            branch->up_ready = false;
            branch->missing_units_above = branch->terms.mask1;
            notify_all(*branch);
        }
        ascend(*branch, now);
        wake_at(now + (branch->ready() ? config_.refresh : config_.impatient));
        for (const Branch::Position& position : silent) {
            if (detach(*branch, position)) break;
        }
    }
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

}  // namespace atp::control
