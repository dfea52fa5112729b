// SPDX-License-Identifier: Apache-2.0
#include "control/in_path_agent.h"

#include <algorithm>

namespace atp::control {
namespace {

// Time for the JOINs of the other members after a LEAVE, and for control messages that arrive late.
constexpr Duration time_after_leave = std::chrono::milliseconds(2500);
// For which a JOIN waits for its JOINED.
constexpr Duration time_of_question = std::chrono::seconds(5);

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

void InPathAgent::remember(const AdmittedJob& job, Time now) {
    known_jobs_.insert_or_assign(JobKey{job.job, job.token}, KnownJob{.job = job, .until = now + hold_});
}

InPathAgent::AgentChange InPathAgent::handle_message(std::span<const std::byte> message, Time now) {
    if (const auto join = wire::decode<wire::Join>(message)) {
        if (passes_here(*join)) handle_join(*join, now);
    } else if (const auto joined = wire::decode<wire::Joined>(message)) {
        return handle_joined(*joined, now);
    } else if (const auto leave = wire::decode<wire::Leave>(message)) {
        handle_leave(*leave, now);
    }
    return {};
}

void InPathAgent::handle_join(const wire::Join& join, Time now) {
    const ChannelKey key = key_of(join);
    const auto known = known_jobs_.find(key.of_job());
    if (known != known_jobs_.end()) known->second.until = std::max(known->second.until, now + hold_);
    const Question question{join.nonce, key};
    if (questions_.size() >= most_questions && !questions_.contains(question)) {
        std::erase_if(questions_, [&](const auto& each) { return now > each.second.until; });
        if (questions_.size() >= most_questions) return;
    }
    questions_[question] = {.until = now + time_of_question, .place = place_of(join)};
}

InPathAgent::AgentChange InPathAgent::handle_joined(const wire::Joined& joined, Time now) {
    const ChannelKey key = key_of(joined);
    const auto question = questions_.find({joined.nonce, key});
    if (question == questions_.end() || now > question->second.until) return {};
    const AdmittedPlace place = question->second.place;
    const AdmittedJob job{.job = key.job, .token = key.token, .level = level_};
    auto known = known_jobs_.find(key.of_job());
    if (known == known_jobs_.end()) {
        if (known_jobs_.size() >= jobs_limit_) {
            ++not_admitted_;
            return {};
        }
        remember(job, now);
        return {.change = Change::admit, .job = job, .place = place};
    }
    const AgentChange nothing{.job = job, .place = place};
    std::map<std::uint16_t, std::uint64_t>& groups = known->second.groups;
    if (joined.group_number == 0 || (groups.size() >= most_groups && !groups.contains(key.channel))) return nothing;
    if (std::exchange(groups[key.channel], joined.group_number) == joined.group_number) return nothing;
    return {.change = Change::learn_group, .job = job, .group_number = joined.group_number, .place = place};
}

void InPathAgent::handle_leave(const wire::Leave& leave, Time now) {
    const auto known = known_jobs_.find(key_of(leave).of_job());
    if (known == known_jobs_.end()) return;
    known->second.until = std::min(known->second.until, now + time_after_leave);
}

std::optional<AdmittedJob> InPathAgent::poll_expired(Time now) {
    std::erase_if(questions_, [&](const auto& each) { return now > each.second.until; });
    const auto silent = std::ranges::find_if(known_jobs_, [&](const auto& each) { return now > each.second.until; });
    if (silent == known_jobs_.end()) return std::nullopt;
    const AdmittedJob job = silent->second.job;
    known_jobs_.erase(silent);
    return job;
}

}  // namespace atp::control
