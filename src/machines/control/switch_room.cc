// SPDX-License-Identifier: Apache-2.0
#include "control/switch_room.h"

#include <algorithm>
#include <utility>

namespace atp::control {

SwitchRoom::Use SwitchRoom::held_by(const Owner& owner) const {
    const auto found = owners_.find(owner);
    return found == owners_.end() ? Use{} : found->second;
}

SwitchRoom::Use SwitchRoom::own_of(const Owner& owner) const {
    return {.jobs = static_cast<std::uint32_t>(own_jobs_.of(owner)),
            .channels = static_cast<std::uint32_t>(own_channels_.of(owner))};
}

SwitchRoom::Use SwitchRoom::left_to_others(const Owner& owner) const {
    const auto jobs = own_jobs_.left_to_others(owner, [&](const Owner& of) { return held_by(of).jobs; });
    const auto channels = own_channels_.left_to_others(owner, [&](const Owner& of) { return held_by(of).channels; });
    return {.jobs = static_cast<std::uint32_t>(jobs), .channels = static_cast<std::uint32_t>(channels)};
}

void SwitchRoom::set_tenants(std::shared_ptr<const Tenants> tenants) {
    tenants_ = std::move(tenants);
    own_jobs_ = Guarantees(tenants_.get(), most_jobs_, [](const Tenant& tenant) { return tenant.jobs; });
    own_channels_ = Guarantees(tenants_.get(), most_channels_, [](const Tenant& tenant) { return tenant.channels; });
}

// A newcomer's own place does not keep it out.
SwitchRoom::RoomAnswer SwitchRoom::full_table(const JobKey& job, const Owner& owner) const {
    const bool is_new = !jobs_.contains(job);
    if (const Tenant* const tenant = tenants_ == nullptr ? nullptr : tenants_->named(owner.tenant)) {
        const Use use = held_by(owner);
        if (use.channels >= tenant->channels.value_or(most_channels_)) return RoomAnswer::channel_limit;
        if (is_new && use.jobs >= tenant->jobs.value_or(most_jobs_)) return RoomAnswer::job_limit;
    }
    const auto newcomer = newcomers_.find(job);
    const bool has_place = newcomer != newcomers_.end() && newcomer->second.has_place;
    const std::uint64_t kept = kept_places_ - (has_place ? 1 : 0);
    const Use left = left_to_others(owner);
    if (channels_ + kept + left.channels >= most_channels_) return RoomAnswer::no_channel;
    if (is_new && jobs_.size() + kept + left.jobs >= most_jobs_) return RoomAnswer::no_job;
    return RoomAnswer::granted;
}

SwitchRoom::RoomAnswer SwitchRoom::take(const JobKey& job, const Owner& owner, Time now, bool may_end) {
    forget_newcomers(now);
    const auto own = jobs_.find(job);
    if (own != jobs_.end() && own->second.owner.tenant != owner.tenant) return RoomAnswer::of_another;
    if (own == jobs_.end() && drains_) return RoomAnswer::draining;
    const Owner& counted = own == jobs_.end() ? owner : own->second.owner;
    const RoomAnswer answer = full_table(job, counted);
    const bool is_full = answer == RoomAnswer::no_channel || answer == RoomAnswer::no_job;
    if (answer != RoomAnswer::granted && !(is_full && may_end)) return answer;
    if (is_full) {
        const auto waiting = newcomers_.find(job);
        if (waiting != newcomers_.end() && !waiting->second.has_place) {
            waiting->second.until = now + kept_for;
            return RoomAnswer::waits;
        }
        // Its place is not enough: limits have grown meanwhile.
        if (waiting != newcomers_.end()) {
            --kept_places_;
            newcomers_.erase(waiting);
        }
        const auto victim = victim_for(counted, answer == RoomAnswer::no_channel, now);
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
    // What an owner has beyond its own.
    const auto borrowed_by = [&](const Owner& of) -> std::uint64_t {
        const Use use = held_by(of);
        const Use own = own_of(of);
        return of_channels ? use.channels - std::min(use.channels, own.channels)
                           : use.jobs - std::min(use.jobs, own.jobs);
    };
    const std::uint64_t share = std::max((of_channels ? most_channels_ : most_jobs_) / shares, least_share);
    const std::uint64_t least = std::max(share + 1, borrowed_by(owner) + 2);
    std::optional<JobKey> found;
    std::uint64_t most = 0;
    std::uint64_t newest = 0;
    for (const auto& [key, job] : jobs_) {
        const std::uint64_t use = borrowed_by(job.owner);
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
