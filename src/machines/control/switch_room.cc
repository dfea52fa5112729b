// SPDX-License-Identifier: Apache-2.0
#include "control/switch_room.h"

#include <algorithm>

namespace atp::control {

// A newcomer's own place does not keep it out.
SwitchRoom::RoomAnswer SwitchRoom::full_table(const JobKey& job) const {
    const auto newcomer = newcomers_.find(job);
    const bool has_place = newcomer != newcomers_.end() && newcomer->second.has_place;
    const std::uint64_t kept = kept_places_ - (has_place ? 1 : 0);
    if (channels_ + kept >= most_channels_) return RoomAnswer::no_channel;
    if (!jobs_.contains(job) && jobs_.size() + kept >= most_jobs_) return RoomAnswer::no_job;
    return RoomAnswer::granted;
}

SwitchRoom::RoomAnswer SwitchRoom::take(const JobKey& job, const Owner& owner, Time now, bool may_end) {
    forget_newcomers(now);
    const RoomAnswer answer = full_table(job);
    if (answer != RoomAnswer::granted && !may_end) return answer;
    if (answer != RoomAnswer::granted) {
        const auto waiting = newcomers_.find(job);
        if (waiting != newcomers_.end()) {
            waiting->second.until = now + kept_for;
            return RoomAnswer::waits;
        }
        const auto own = jobs_.find(job);
        const auto victim =
            victim_for(own == jobs_.end() ? owner : own->second.owner, answer == RoomAnswer::no_channel, now);
        if (!victim) return answer;
        jobs_[*victim].ends = true;
        ++ending_;
        newcomers_[job] = {.victim = *victim, .until = now + kept_for};
        return RoomAnswer::waits;
    }
    if (const auto waited = newcomers_.find(job); waited != newcomers_.end()) {
        if (waited->second.has_place) --kept_places_;
        newcomers_.erase(waited);
    }
    SharedJob& entry = jobs_[job];
    if (entry.channels++ == 0) {
        entry.owner = owner;
        entry.number = ++last_number_;
        ++owners_[owner].jobs;
    }
    ++owners_[entry.owner].channels;
    ++channels_;
    return RoomAnswer::granted;
}

// Of the owner that has most, the newest job that may end.
std::optional<JobKey> SwitchRoom::victim_for(const Owner& owner, bool of_channels, Time now) const {
    const auto use_of = [&](const Owner& of) -> std::uint64_t {
        const auto found = owners_.find(of);
        if (found == owners_.end()) return 0;
        return of_channels ? found->second.channels : found->second.jobs;
    };
    const std::uint64_t share = std::max((of_channels ? most_channels_ : most_jobs_) / shares, least_share);
    const std::uint64_t least = std::max(share + 1, use_of(owner) + 2);
    std::optional<JobKey> found;
    std::uint64_t most = 0;
    std::uint64_t newest = 0;
    for (const auto& [key, job] : jobs_) {
        const std::uint64_t use = use_of(job.owner);
        if (job.ends || use < least || now < job.protected_until) continue;
        if (use < most || (use == most && job.number < newest)) continue;
        found = key;
        most = use;
        newest = job.number;
    }
    return found;
}

void SwitchRoom::forget_newcomers(Time now) {
    std::erase_if(newcomers_, [&](const auto& entry) {
        const bool left = entry.second.until <= now;
        if (left && entry.second.has_place) --kept_places_;
        return left;
    });
}

void SwitchRoom::protect(const JobKey& job, Time until) {
    const auto found = jobs_.find(job);
    if (found != jobs_.end()) found->second.protected_until = std::max(found->second.protected_until, until);
}

bool SwitchRoom::must_end(const JobKey& job) const {
    const auto found = jobs_.find(job);
    return found != jobs_.end() && found->second.ends;
}

bool SwitchRoom::is_half_full() const {
    return 2 * jobs_.size() >= most_jobs_ + most_jobs_ % 2 || 2 * channels_ >= most_channels_ + most_channels_ % 2;
}

void SwitchRoom::give_back(const JobKey& job) {
    const auto found = jobs_.find(job);
    if (found == jobs_.end()) return;
    --channels_;
    const auto owner = owners_.find(found->second.owner);
    --owner->second.channels;
    if (--found->second.channels != 0) return;
    if (--owner->second.jobs == 0) owners_.erase(owner);
    if (found->second.ends) {
        --ending_;
        for (auto& [key, newcomer] : newcomers_) {
            if (newcomer.victim != job || newcomer.has_place) continue;
            newcomer.has_place = true;
            ++kept_places_;
            break;
        }
    }
    jobs_.erase(found);
}

}  // namespace atp::control
