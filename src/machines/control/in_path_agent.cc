// SPDX-License-Identifier: Apache-2.0
#include "control/in_path_agent.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "control/charged_key.h"

namespace atp::control {
namespace {

// Time for the JOINs of the other members after a LEAVE, and for control messages that arrive late.
constexpr Duration time_after_leave = std::chrono::milliseconds(2500);

}  // namespace

// True if the JOIN goes to the level of this switch. Also true if members of one unit join a higher level separately:
// this switch may then aggregate for them.
bool InPathAgent::passes_here(const wire::Join& join) const {
    if (join.level >= ATP_LEVELS) return false;
    const wire::JoiningUnit& unit = join.units.front();
    return join.level == level_ || (join.level > level_ && unit.members != unit.mask0);
}

AdmittedPlace InPathAgent::place_of(const wire::Join& join) const {
    const wire::JoiningUnit& unit = join.units.front();
    if (level_ != 0) return {.channel = join.terms.channel, .unit = 0, .mask = join.terms.mask1};
    return {.channel = join.terms.channel, .unit = 1U << unit.unit, .mask = unit.mask0};
}

// At level 1, a switch below copies for the members of its rack: the first of them gets one packet for all.
std::optional<PassedMember> InPathAgent::member_of(const wire::Join& join, const PassingMessage& message) const {
    const wire::JoiningUnit& unit = join.units.front();
    const auto member = static_cast<std::uint16_t>(std::countr_zero(unit.members));
    if (!message.is_plain || (level_ != 0 && member != 0)) return std::nullopt;
    const auto number = static_cast<std::uint16_t>(level_ != 0 ? unit.unit : unit.unit * ATP_BITMAP_BITS + member);
    return PassedMember{
        .number = number, .address = message.from, .entrance = message.entrance, .ethernet = message.ethernet};
}

void InPathAgent::remember(const AdmittedJob& job, Time now) {
    known_jobs_.insert_or_assign(JobKey{job.job, job.token}, KnownJob{.job = job, .until = now + hold_});
}

InPathAgent::AgentChange InPathAgent::handle_message(const PassingMessage& message, Time now) {
    if (const auto join = wire::decode<wire::Join>(message.bytes)) {
        if (passes_here(*join)) handle_join(*join, message, now);
    } else if (const auto joined = wire::decode<wire::Joined>(message.bytes)) {
        return handle_joined(*joined, message, now);
    } else if (const auto leave = wire::decode<wire::Leave>(message.bytes)) {
        handle_leave(*leave, now);
    }
    return {};
}

void InPathAgent::handle_join(const wire::Join& join, const PassingMessage& message, Time now) {
    const ChannelKey key = key_of(join);
    const auto known = known_jobs_.find(key.of_job());
    if (known != known_jobs_.end()) known->second.until = std::max(known->second.until, now + hold_);
    questions_.ask(message, join.nonce, key, {.place = place_of(join), .member = member_of(join, message)}, now);
}

std::uint32_t InPathAgent::proven_key(const wire::Joined& joined, const PassingMessage& message) const {
    return tenants_ == nullptr ? 0 : charged_key(*tenants_, joined, message.bytes);
}

InPathAgent::AgentChange InPathAgent::handle_joined(const wire::Joined& joined, const PassingMessage& message,
                                                    Time now) {
    const ChannelKey key = key_of(joined);
    const auto proven = questions_.answer(message, joined.nonce, key, now);
    if (!proven) return {};
    const auto known = known_jobs_.find(key.of_job());
    if (known == known_jobs_.end()) {
        if (known_jobs_.size() >= jobs_limit_) {
            ++not_admitted_;
            return {};
        }
        const AdmittedJob job{
            .job = key.job, .token = key.token, .level = level_, .key_id = proven_key(joined, message)};
        remember(job, now);
        return {.change = Change::admit, .job = job, .place = proven->place, .member = proven->member};
    }
    AdmittedJob& job = known->second.job;
    if (job.key_id == 0) {
        job.key_id = proven_key(joined, message);
        if (job.key_id != 0)
            return {.change = Change::charge, .job = job, .place = proven->place, .member = proven->member};
    }
    AgentChange change{.job = job, .place = proven->place, .member = proven->member};
    std::map<std::uint16_t, std::uint64_t>& groups = known->second.groups;
    if (joined.group_number == 0 || (groups.size() >= most_groups && !groups.contains(key.channel))) return change;
    if (std::exchange(groups[key.channel], joined.group_number) == joined.group_number) return change;
    change.change = Change::learn_group;
    change.group_number = joined.group_number;
    return change;
}

void InPathAgent::reject(const JobKey& job) {
    known_jobs_.erase(job);
    ++not_admitted_;
}

void InPathAgent::handle_leave(const wire::Leave& leave, Time now) {
    const auto known = known_jobs_.find(key_of(leave).of_job());
    if (known == known_jobs_.end()) return;
    known->second.until = std::min(known->second.until, now + time_after_leave);
}

std::optional<AdmittedJob> InPathAgent::poll_expired(Time now) {
    questions_.forget_expired(now);
    const auto silent = std::ranges::find_if(known_jobs_, [&](const auto& each) { return now > each.second.until; });
    if (silent == known_jobs_.end()) return std::nullopt;
    const AdmittedJob job = silent->second.job;
    known_jobs_.erase(silent);
    return job;
}

}  // namespace atp::control
