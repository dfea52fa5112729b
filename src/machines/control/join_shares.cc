// SPDX-License-Identifier: Apache-2.0
// How a tree admits a channel, and which one ends when there is no room (docs/spec/joining.md#a-full-switch).
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

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
    const bool channels = answer == SwitchRoom::RoomAnswer::no_channel;
    return Admission{Objection{
        wire::Refusal::full,
        fmt::format(
            // errors.md, refused: the switch serves `--jobs` or `--channels` already
            "the table of {0} is full ({1}): wait for another job to end, or restart the switch with more --{0}",
            channels ? "channels" : "jobs", channels ? config_.channels : config_.jobs)}};
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
            "ended for a job of another host: {} is full, this host has more than its share, and this job was "
            "incomplete, on one host, or idle for {:.0f} s",
            table, std::chrono::duration<double>(idle_holds * config_.hold).count())};
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

// Channels that could end for `bytes` more of `owner`, as few as are enough; none: these would not be. Like SwitchRoom,
// but for the memory of this tree.
std::vector<Branch*> JoinTree::victims_for(std::uint64_t bytes, const Owner& owner, Time now) const {
    std::map<Owner, std::uint64_t> held;
    for (const auto& [key, branch] : branches_) {
        if (branch->has_memory) held[branch->owner] += server_bytes_of(branch->terms);
    }
    const std::uint64_t least = std::max(memory_.limit() / SwitchRoom::shares, held[owner] + bytes) + 1;
    std::vector<Branch*> found;
    for (const auto& [key, branch] : branches_) {
        if (branch->has_memory && held[branch->owner] >= least && may_end(*branch, now)) found.push_back(branch.get());
    }
    std::ranges::sort(found, std::greater(),
                      [&](const Branch* branch) { return std::pair(held[branch->owner], branch->number); });
    const std::uint64_t missing = memory_.used() + bytes - memory_.limit();
    std::uint64_t freed = 0;
    std::size_t count = 0;
    while (count < found.size() && freed < missing) freed += server_bytes_of(found[count++]->terms);
    found.resize(freed < missing ? 0 : count);
    return found;
}

bool JoinTree::could_reserve(std::uint64_t bytes, const Owner& owner, Time now) const {
    return memory_.fits(bytes) || !victims_for(bytes, owner, now).empty();
}

bool JoinTree::reserve(std::uint64_t bytes, const Owner& owner, Time now) {
    if (memory_.reserve(bytes)) return true;
    for (Branch* const branch : victims_for(bytes, owner, now)) {
        end_for_others(*branch, "the memory for servers", now);
    }
    return memory_.reserve(bytes);
}

}  // namespace ATP_VARIANT
}  // namespace atp::control
