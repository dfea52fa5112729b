// SPDX-License-Identifier: Apache-2.0
#include "control/join_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "numeric/exact_sum.h"

namespace atp::control {
namespace {

bool is_single_unit(const wire::ChannelTerms& terms) { return std::has_single_bit(terms.mask1); }

// The first field that differs, of those that all members must agree on; nullptr: none.
const char* difference(const wire::ChannelTerms& a, const wire::ChannelTerms& b) {
    if (a.lanes != b.lanes) return "lanes of a packet";
    if (a.window_log2 != b.window_log2) return "window";
    if (a.audit != b.audit) return "audit lane";
    if (a.aggregators != b.aggregators) return "number of aggregators";
    if (a.first_seq != b.first_seq) return "first sequence number";
    if (a.mask1 != b.mask1) return "units of the job";
    if (a.scale != b.scale) return "scale";
    if (a.server != b.server) return "place of the server";
    if (a.protocol != b.protocol) return "protocol";
    if (a.group != b.group) return "multicast group";
    return nullptr;
}

// What a switch that hosted a channel loses when it restarts.
std::string_view hosted(const wire::ChannelTerms& terms) {
    return wire::is_switchml(terms.protocol) ? "the slots of this job were here and are gone"
                                             : "the parameter server of this job was here and is gone";
}

}  // namespace

std::uint64_t server_bytes_of(const wire::ChannelTerms& terms) {
    if (wire::is_switchml(terms.protocol)) return 0;
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
    branch->seat(join, from, now);
    if (contradicts_itself(*branch)) {
        ++counters_.refused;
        refuse_all(*branch, {.job = join.terms.job,
                             .token = join.terms.token,
                             .channel = join.terms.channel,
                             .reason = wire::Refusal::terms,
                             .text = "the members of the job do not have the ranks 0, 1, ... once each"});
        close(*branch);
        return;
    }
    open_server(*branch);
    ascend(*branch, now);
    // This JOIN made the branch ready: notify every child, not only the sender.
    if (branch->ready() && !was_ready) {
        tell_all(*branch);
        branch->group_next = now;
    } else {
        tell(*branch, *branch->at(Branch::seat_of(join)));
    }
    tell_group(*branch, from, now);
    wake_at(now + (branch->ready() ? config_.refresh : config_.impatient));
}

std::optional<JoinTree::Objection> JoinTree::objection_to(const wire::Join& join, const wire::Address& from, Time now) {
    if (auto objection = objection_to_ranks(join)) return objection;
    const auto job = jobs_.find(join.terms.job);
    if (job != jobs_.end() && job->second.token != join.terms.token) {
        return Objection{wire::Refusal::token,
                         fmt::format("job {:#x} runs here in another incarnation, which is "
                                     "forgotten {} s after its last worker fell silent",
                                     join.terms.job, std::chrono::ceil<std::chrono::seconds>(config_.hold).count())};
    }
    if (job != jobs_.end() && job->second.level != join.level) {
        return Objection{wire::Refusal::terms,
                         fmt::format("this switch serves level {} of the job, not level {}: do its members see "
                                     "different trees of switches?",
                                     job->second.level, join.level)};
    }
    const Branch* branch = find(join.terms.job, join.terms.channel);
    return branch == nullptr ? objection_to_new(join) : objection_to_known(*branch, join, from, now);
}

std::optional<JoinTree::Objection> JoinTree::objection_to_ranks(const wire::Join& join) {
    for (const wire::JoiningUnit& unit : join.units) {
        for (const std::uint16_t rank : unit.ranks) {
            if (rank < Branch::max_ranks) continue;
            return Objection{wire::Refusal::place, fmt::format("rank {} is beyond {}", rank, Branch::max_ranks - 1)};
        }
    }
    return std::nullopt;
}

std::optional<JoinTree::Objection> JoinTree::objection_to_new(const wire::Join& join) const {
    if (auto objection = objection_to_protocol(join)) return objection;
    const bool needs_parent = join.level == 0 && !is_single_unit(join.terms);
    if (needs_parent && config_.parent.family() == wire::Family::none) {
        return Objection{wire::Refusal::parent,
                         "the job spans several switches, and this one has no --parent that joins them"};
    }
    const bool would_host = join.level == 2 || (!needs_parent && join.terms.server.family == 0);
    if (join.begun && would_host) {
        return Objection{wire::Refusal::restarted,
                         fmt::format("{} (the switch restarted, or the job was silent for too long): the job must "
                                     "re-form",
                                     hosted(join.terms))};
    }
    return would_host ? objection_to_server(join.terms) : std::nullopt;
}

std::optional<JoinTree::Objection> JoinTree::take_room(std::uint32_t job) {
    const SwitchRoom::Answer answer = config_.room->take(job);
    if (answer == SwitchRoom::Answer::granted) return std::nullopt;
    const bool channels = answer == SwitchRoom::Answer::no_channel;
    return Objection{wire::Refusal::full,
                     fmt::format("the table of {0} is full ({1}); wait for another job to end, or "
                                 "start the switch with more --{0}",
                                 channels ? "channels" : "jobs", channels ? config_.channels : config_.jobs)};
}

std::optional<JoinTree::Objection> JoinTree::objection_to_protocol(const wire::Join& join) const {
    const wire::ChannelTerms& terms = join.terms;
    const bool switchml = wire::is_switchml(terms.protocol);
    if (!(switchml ? config_.serves_switchml : config_.serves_atp)) {
        return Objection{wire::Refusal::unsupported,
                         fmt::format("this switch does not serve {0}: start it with --protocol {0}, or both",
                                     switchml ? "switchml" : "atp")};
    }
    if (switchml && (join.level != 0 || !is_single_unit(terms))) {
        return Objection{wire::Refusal::unsupported,
                         "SwitchML knows one switch: all workers of the job have to join the same"};
    }
    if (switchml && (terms.audit || terms.server.family != 0 || terms.group.family != 0)) {
        return Objection{wire::Refusal::unsupported, "SwitchML has no audit lane, no parameter server and no group"};
    }
    return std::nullopt;
}

std::optional<JoinTree::Objection> JoinTree::objection_to_server(const wire::ChannelTerms& terms) const {
    if (wire::is_switchml(terms.protocol)) return std::nullopt;
    if (config_.server_bytes == 0) {
        return Objection{wire::Refusal::unsupported,
                         "this switch hosts no parameter servers (--no-server): let the job "
                         "have them colocated or dedicated"};
    }
    if (server_bytes_ + server_bytes_of(terms) > config_.server_bytes) {
        return Objection{wire::Refusal::full,
                         fmt::format("no memory is left for another parameter server: {} of {} MB are in use and this "
                                     "one needs {} MB; start the switch with more --server-memory",
                                     server_bytes_ >> 20U, config_.server_bytes >> 20U, server_bytes_of(terms) >> 20U)};
    }
    return std::nullopt;
}

std::optional<JoinTree::Objection> JoinTree::objection_to_known(const Branch& branch, const wire::Join& join,
                                                                const wire::Address& from, Time now) const {
    if (const char* field = difference(branch.terms, join.terms)) {
        return Objection{wire::Refusal::terms,
                         fmt::format("this member and the others of the job differ in the {}", field)};
    }
    if (auto objection = objection_to_shape(branch, join)) return objection;
    if (branch.hosts && !branch.opened && join.begun) {
        return Objection{wire::Refusal::restarted, fmt::format("{}: the job must re-form", hosted(join.terms))};
    }
    const Branch::Seat seat = Branch::seat_of(join);
    const Branch::Child* const child = branch.at(seat);
    if (child == nullptr) return std::nullopt;
    const bool changed = child->unit != join.units.front() || (branch.level == 2 && branch.units_below != join.units);
    // A restarted switch may send from another port. Its token proves that it serves the same incarnation.
    const bool restarted_switch = branch.level != 0 && join.begun && !seat.in_rack() && !join.units.front().direct;
    if (changed && (child->address == from || restarted_switch)) {
        return Objection{wire::Refusal::place, "this member took part in another place of the job before"};
    }
    if (child->address != from && !restarted_switch && now - child->refreshed < config_.hold) {
        return Objection{wire::Refusal::place,
                         fmt::format("the place of rank {} is taken by {}", join.units.front().ranks.front(),
                                     to_string(child->address))};
    }
    return std::nullopt;
}

// Checks that this member expects the same set of members as the others.
std::optional<JoinTree::Objection> JoinTree::objection_to_shape(const Branch& branch, const wire::Join& join) {
    const wire::JoiningUnit& unit = join.units.front();
    const Branch::Seat seat = Branch::seat_of(join);
    const Branch::Rack* const rack = branch.racks[seat.bit].get();
    const bool another_rack = rack != nullptr ? !seat.in_rack() || rack->mask != unit.mask0
                                              : seat.in_rack() && (branch.present >> seat.bit & 1U) != 0;
    if (Branch::of(join).mask != branch.mask || another_rack) {
        return Objection{wire::Refusal::terms, "this member and the others of the job differ in who takes part"};
    }
    if (branch.level == 0 && unit.unit != branch.unit()) {
        return Objection{wire::Refusal::terms,
                         fmt::format("this switch serves unit {} of the job, not unit {}: racks need switches of "
                                     "their own, or names",
                                     branch.unit(), unit.unit)};
    }
    return std::nullopt;
}

Branch& JoinTree::open_branch(const wire::Join& join, Time now) {
    auto branch = std::make_unique<Branch>(Branch::of(join));
    const bool ends_here = join.level >= 1 || is_single_unit(join.terms);
    if (join.level == 2 || (ends_here && join.terms.server.family == 0)) {
        branch->hosts = true;
        server_bytes_ += server_bytes_of(join.terms);
    } else {
        branch->up = ends_here ? address_of(join.terms.server) : config_.parent;
        branch->up_next = now;
    }
    if (ends_here && join.level != ATP_LEVELS) branch->group = address_of(join.terms.group);
    Job& job = jobs_[join.terms.job];
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

// Only the host of a channel receives the ranks of all members, so only the host can find a rank that two claim.
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
    tell_all(*branch);
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
    Branch::Seat seat;
    if (known && branch->level == 0) seat.bit = leave.member;
    if (known && branch->level == 1) {
        seat.bit = leave.unit;
        if (branch->racks[leave.unit] != nullptr) seat.member = leave.member;
    }
    const Branch::Child* const child = known ? branch->at(seat) : nullptr;
    if (child == nullptr || child->address != from) {
        ++counters_.forged;
        return;
    }
    ++counters_.left;
    unseat(*branch, seat);
}

// An incarnation cannot continue without one of its members. The others are therefore notified which one is missing.
bool JoinTree::unseat(Branch& branch, const Branch::Seat& seat) {
    branch.unseat(seat);
    const bool gone = branch.deserted();
    if (gone) {
        close(branch);
    } else {
        tell_all(branch);
    }
    return gone;
}

// ------------------------------------------------------------------------------------------------------- From above

void JoinTree::handle_joined(const wire::Joined& joined, const wire::Address& from, Time now) {
    Branch* branch = find(joined.job, joined.channel);
    if (branch == nullptr || branch->hosts || branch->terms.token != joined.token) {
        ++counters_.forged;
        return;
    }
    const bool was_ready = branch->ready();
    branch->up_heard = now;
    branch->up_data = from;
    branch->up_ready = joined.ready;
    branch->missing_units_above = joined.missing_units;
    if (branch->ready() != was_ready) tell_all(*branch);
}

void JoinTree::handle_refused(const wire::Refused& refused, const wire::Address& from) {
    Branch* branch = find(refused.job, refused.channel);
    if (branch == nullptr || branch->hosts || branch->terms.token != refused.token) {
        ++counters_.forged;
        return;
    }
    wire::Refused passed_on = refused;
    passed_on.text = fmt::format("{} (said by {})", refused.text, to_string(from));
    refuse_all(*branch, passed_on);
    close(*branch);
}

void JoinTree::refuse_all(const Branch& branch, const wire::Refused& refused) {
    branch.for_each_child([&](const Branch::Child& child) { outbox_.push_back({child.address, refused}); });
}

wire::Join JoinTree::join_upwards(const Branch& branch) {
    return {.terms = branch.terms,
            .level = static_cast<std::uint8_t>(branch.level == 0 && !is_single_unit(branch.terms) ? 1 : ATP_LEVELS),
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
void JoinTree::tell(const Branch& branch, const Branch::Child& child) {
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
void JoinTree::tell_group(Branch& branch, const wire::Address& near, Time now) {
    if (branch.group.family() != near.family() || now < branch.group_next) return;
    outbox_.push_back({branch.group, joined_of(branch), near});
    branch.group_next = now + (branch.by_group ? config_.refresh : config_.impatient);
}

void JoinTree::tell_all(const Branch& branch) {
    branch.for_each_child([&](const Branch::Child& child) { tell(branch, child); });
}

void JoinTree::close(Branch& branch) {
    const wire::ChannelTerms terms = branch.terms;
    if (!branch.hosts && branch.up_heard != Time{}) {
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
        std::vector<Branch::Seat> silent;
        branch->for_each_child([&](const Branch::Child& child) {
            if (now - child.refreshed > config_.hold) silent.push_back(Branch::seat_of(branch->level, child.unit));
        });
        counters_.expired += silent.size();
        if (!branch->hosts && branch->up_ready && now - branch->up_heard > config_.hold) {
            branch->up_ready = false;
            branch->missing_units_above = branch->terms.mask1;
            tell_all(*branch);
        }
        ascend(*branch, now);
        wake_at(now + (branch->ready() ? config_.refresh : config_.impatient));
        for (const Branch::Seat& seat : silent) {
            if (unseat(*branch, seat)) break;
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
