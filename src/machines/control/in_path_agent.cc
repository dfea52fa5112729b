// SPDX-License-Identifier: Apache-2.0
#include "control/in_path_agent.h"

#include <algorithm>

namespace atp::control {
namespace {

// Two JOINs, which each member sends every second, and 500 ms for control messages that arrive late.
constexpr Duration time_of_two_joins = std::chrono::milliseconds(2500);

}  // namespace

// True if the JOIN goes to the level of this switch. Also true if members of one unit join a higher level separately:
// this switch may then aggregate for them.
bool InPathAgent::passes_here(const wire::Join& join) const {
    if (join.terms.protocol != wire::ChannelProtocol::atp || join.level >= ATP_LEVELS) return false;
    const wire::JoiningUnit& unit = join.units.front();
    return join.level == level_ || (join.level > level_ && unit.members != unit.mask0);
}

void InPathAgent::remember(const AdmittedJob& job, Time now) {
    known_jobs_.insert_or_assign(job.job, KnownJob{.job = job, .until = now + hold_});
}

InPathAgent::AgentChange InPathAgent::handle_message(std::span<const std::byte> message, Time now) {
    if (const auto join = wire::decode_join(message); join && passes_here(*join)) {
        return handle_join({.job = join->terms.job, .token = join->terms.token, .level = level_}, now);
    }
    if (const auto leave = wire::decode_leave(message)) handle_leave(*leave, now);
    return {};
}

InPathAgent::AgentChange InPathAgent::handle_join(const AdmittedJob& job, Time now) {
    const auto known = known_jobs_.find(job.job);
    if (known == known_jobs_.end()) {
        if (known_jobs_.size() >= jobs_limit_) {
            ++not_admitted_;
            return {};
        }
    } else if (known->second.job == job) {
        remember(job, now);
        return {};
    } else if (!known->second.left) {
        return {};
    }
    remember(job, now);
    return {.change = Change::admit, .job = job};
}

void InPathAgent::handle_leave(const wire::Leave& leave, Time now) {
    const auto known = known_jobs_.find(leave.job);
    if (known == known_jobs_.end() || known->second.job.token != leave.token) return;
    known->second.left = true;
    known->second.until = std::min(known->second.until, now + time_of_two_joins);
}

std::optional<AdmittedJob> InPathAgent::poll_expired(Time now) {
    const auto silent = std::ranges::find_if(known_jobs_, [&](const auto& each) { return now > each.second.until; });
    if (silent == known_jobs_.end()) return std::nullopt;
    const AdmittedJob job = silent->second.job;
    known_jobs_.erase(silent);
    return job;
}

}  // namespace atp::control
