// SPDX-License-Identifier: Apache-2.0
// How a tree admits a channel, and which one ends when there is no room (docs/spec/joining.md#a-full-switch).
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "base/units.h"
#include "control/join_tree.h"
#include "control/ticket.h"

namespace atp::control {
inline namespace ATP_VARIANT {
namespace {

// A channel without a result for so many hold times does no work that others should wait for.
constexpr int idle_holds = 10;

}  // namespace

// A switch that restarted keeps half of its tables for the jobs that it served before, until they have had the time to
// join again (H69). Their tickets tell which these are. Others repeat their JOINs.
bool JoinTree::must_wait(const wire::Join& join, Time now) {
    if (began_at_ == never) began_at_ = now;
    if (now - began_at_ >= config_.hold || !config_.room->is_half_full()) return false;
    return !join.begun || join.ticket != ticket_of(config_.ticket_key, key_of(join));
}

std::optional<JoinTree::Admission> JoinTree::take_place(const wire::Join& join, const Owner& owner, Time now) {
    const JobKey job = key_of(join).of_job();
    const bool waits = must_wait(join, now);
    SwitchRoom::RoomAnswer answer = config_.room->take(job, owner, now, !waits);
    if (answer == SwitchRoom::RoomAnswer::waits) {
        end_marked(now);
        answer = config_.room->take(job, owner, now, true);
    }
    if (answer == SwitchRoom::RoomAnswer::waits) return std::nullopt;
    if (answer == SwitchRoom::RoomAnswer::granted) {
        if (!waits) return Admission{};
        config_.room->give_back(job);
        return std::nullopt;
    }
    return Admission{no_place(answer, owner)};
}

// Whoever guesses jobs of others learns nothing.
JoinTree::Objection JoinTree::of_another_tenant(const Owner& owner) {
    return {.reason = wire::Refusal::key,
            .text = std::string(unknown_text),
            .why = "the job is one of tenant " + owner.tenant};
}

JoinTree::Objection JoinTree::no_place(SwitchRoom::RoomAnswer answer, const Owner& owner) const {
    using Answer = SwitchRoom::RoomAnswer;
    if (answer == Answer::of_another) return of_another_tenant(owner);
    if (answer == Answer::draining) {
        return {wire::Refusal::full,
                // errors.md, refused: the operator has called `atp drain`
                "this switch is about to end and takes no new job: use another one, or wait until it is back"};
    }
    const bool channels = answer == Answer::no_channel || answer == Answer::channel_limit;
    const std::string_view table = channels ? "channels" : "jobs";
    if (answer == Answer::no_channel || answer == Answer::no_job) {
        return {
            wire::Refusal::full,
            fmt::format(
                // errors.md, refused: the switch serves `--jobs` or `--channels` already
                "the table of {0} is full ({1}): wait for another job to end, or restart the switch with more --{0}",
                table, channels ? config_.channels : config_.jobs)};
    }
    const SwitchRoom::Use use = config_.room->use_of(owner);
    const Tenant* const tenant = config_.tenants == nullptr ? nullptr : config_.tenants->named(owner.tenant);
    const auto limit = tenant == nullptr ? std::nullopt : channels ? tenant->channels : tenant->jobs;
    return {wire::Refusal::full,
            fmt::format(
                // errors.md, refused: the tenants file of the switch limits your team
                "tenant {0} has {1} of {2} {3} on this switch: wait for one to end, or have its operator raise {3}",
                owner.tenant, channels ? use.channels : use.jobs,
                limit.value_or(channels ? config_.channels : config_.jobs), table)};
}

// A parent on another host counts as a host of the job, since members of other racks are behind it.
bool JoinTree::may_end(const Branch& branch, Time now) const {
    const bool spans_hosts =
        branch.spans_hosts || (branch.up_ready && HostKey::of(branch.up_data) != branch.first_host);
    const bool works = branch.complete() && spans_hosts && now - branch.active_at < idle_holds * config_.hold;
    return !works;
}

void JoinTree::protect(const Branch& branch) {
    const Time until = branch.active_at + idle_holds * config_.hold;
    if (!may_end(branch, branch.active_at)) config_.room->protect(key_of(branch.terms).of_job(), until);
}

void JoinTree::end_for_others(Branch& branch, std::string_view table, Time now) {
    ++counters_.refused;
    const wire::Refused refused{
        .job = branch.terms.job,
        .token = branch.terms.token,
        .channel = branch.terms.channel,
        .reason = wire::Refusal::full,
        .text = fmt::format(
            // errors.md, refused: the switch serves `--jobs`, `--channels` or `--server-memory` already. Use fewer jobs
            // on one host, or restart the switch with more of that
            "ended for a job of another {0}: {1} is full, this {0} has more than its share, and this job was "
            "incomplete, on one host, or idle for {2:.0f} s",
            branch.owner.tenant.empty() ? "host" : "tenant", table,
            std::chrono::duration<double>(idle_holds * config_.hold).count())};
    bar(refused, now);
    end_refused(branch, refused, now);
}

void JoinTree::end_marked(Time now) {
    std::vector<ChannelKey> marked;
    for (const auto& [key, branch] : branches_) {
        if (config_.room->must_end(key.of_job())) marked.push_back(key);
    }
    for (const ChannelKey& key : marked) {
        if (Branch* const branch = find(key)) end_for_others(*branch, "the table of jobs or channels", now);
    }
}

// -------------------------------------------------------------------------------------------------- Memory for servers

void JoinTree::apply_limits() {
    own_memory_ = Guarantees(config_.tenants.get(), memory_.limit(),
                             [&](const Tenant& tenant) { return memory_limit_of({.tenant = tenant.name}); });
    note_memory();
}

std::map<Owner, std::uint64_t> JoinTree::memory_of_owners() const {
    std::map<Owner, std::uint64_t> held;
    for (const auto& [key, branch] : branches_) {
        if (branch->has_memory) held[branch->owner] += server_bytes_of(branch->terms);
    }
    return held;
}

std::optional<std::uint64_t> JoinTree::memory_limit_of(const Owner& owner) const {
    const Tenant* const tenant = config_.tenants == nullptr ? nullptr : config_.tenants->named(owner.tenant);
    if (tenant == nullptr || !tenant->server_bytes) return std::nullopt;
    return *tenant->server_bytes / config_.trees;
}

bool JoinTree::exceeds_limit(std::uint64_t bytes, const Owner& owner) const {
    const auto limit = memory_limit_of(owner);
    return limit && memory_of_owners()[owner] + bytes > *limit;
}

std::uint64_t JoinTree::memory_left_to_others(const Owner& owner) const {
    if (config_.tenants == nullptr) return 0;
    auto held = memory_of_owners();
    return own_memory_.left_to_others(owner, [&](const Owner& of) { return held[of]; });
}

// What servers grow by takes nothing of a tenant's own.
void JoinTree::note_memory() { memory_.keep(memory_left_to_others({})); }

// Channels that could end for `bytes` more of `owner`, as few as are enough; none: these would not be. Like SwitchRoom,
// but for the memory of this tree.
std::vector<Branch*> JoinTree::victims_for(std::uint64_t bytes, const Owner& owner, Time now) const {
    auto held = memory_of_owners();
    for (auto& [of, held_bytes] : held) held_bytes -= std::min(held_bytes, own_memory_.of(of));
    const std::uint64_t least = std::max(memory_.limit() / SwitchRoom::shares, held[owner] + bytes) + 1;
    std::vector<Branch*> found;
    for (const auto& [key, branch] : branches_) {
        if (branch->has_memory && held[branch->owner] >= least && may_end(*branch, now)) found.push_back(branch.get());
    }
    std::ranges::sort(found, std::greater(),
                      [&](const Branch* branch) { return std::pair(held[branch->owner], branch->number); });
    const std::uint64_t missing = memory_.used() + memory_left_to_others(owner) + bytes - memory_.limit();
    std::uint64_t freed = 0;
    std::size_t count = 0;
    for (; count < found.size() && freed < missing; ++count) {
        // What ends of a tenant's own is left to it.
        std::uint64_t& borrowed = held[found[count]->owner];
        const std::uint64_t lent = std::min(borrowed, server_bytes_of(found[count]->terms));
        freed += lent;
        borrowed -= lent;
    }
    found.resize(freed < missing ? 0 : count);
    return found;
}

bool JoinTree::could_reserve(std::uint64_t bytes, const Owner& owner, Time now) const {
    if (exceeds_limit(bytes, owner)) return false;
    return memory_.fits(bytes + memory_left_to_others(owner)) || !victims_for(bytes, owner, now).empty();
}

bool JoinTree::reserve(std::uint64_t bytes, const Owner& owner, Time now) {
    if (exceeds_limit(bytes, owner)) return false;
    if (!memory_.fits(bytes + memory_left_to_others(owner))) {
        for (Branch* const branch : victims_for(bytes, owner, now)) {
            end_for_others(*branch, "the memory for servers", now);
        }
    }
    return memory_.fits(bytes + memory_left_to_others(owner)) && memory_.reserve(bytes);
}

std::string JoinTree::no_memory_for(const wire::ChannelTerms& terms, const Owner& owner) const {
    const std::uint64_t bytes = server_bytes_of(terms);
    if (exceeds_limit(bytes, owner)) {
        return fmt::format(
            // errors.md, refused: the tenants file of the switch limits your team
            "tenant {} has {} of {} MB for parameter servers on this switch, {} MB needed: wait for a job to end, or "
            "have its operator raise server_memory",
            owner.tenant, megabytes(memory_of_owners()[owner]), megabytes(*memory_limit_of(owner)), megabytes(bytes));
    }
    return fmt::format(
        // errors.md, refused: or place the servers [elsewhere](../operate/run.md#parameter-servers)
        "no memory for another parameter server: {} of {} MB in use, {} MB needed: restart the switch with more "
        "--server-memory",
        megabytes(memory_.used()), megabytes(config_.server_bytes), megabytes(bytes));
}

}  // namespace ATP_VARIANT
}  // namespace atp::control
