// SPDX-License-Identifier: Apache-2.0
#include "p4agent/pipeline_plane.h"

#include <algorithm>
#include <utility>

namespace atp::p4agent {

Result<std::unique_ptr<PipelinePlane>> PipelinePlane::open(const wire::Address& server) {
    auto bmv2 = Bmv2::open(server);
    if (!bmv2) return tl::unexpected(bmv2.error());
    return std::unique_ptr<PipelinePlane>(new PipelinePlane(*std::move(bmv2)));
}

PipelinePlane::PipelinePlane(Bmv2 bmv2) : bmv2_(std::move(bmv2)), tables_(job_tables_of(bmv2_)) {
    tables_->clear();
    for (std::uint32_t slot = std::min<std::uint32_t>(program().jobs, 0xFFFF); slot > 0; --slot)
        free_slots_.push_back(static_cast<std::uint16_t>(slot));
}

bool PipelinePlane::admit(const control::AdmittedJob& job) {
    if (served_.contains(job.key())) return true;
    if (free_slots_.empty()) return false;
    const std::uint16_t slot = free_slots_.back();
    // The counters of a job begin at 0.
    for (std::uint32_t event = 0; event < ATP_EVENT_COUNT; ++event)
        bmv2_.clear_counter("events", slot * ATP_EVENT_COUNT + event);
    if (!tables_->admit(job, slot)) return false;
    free_slots_.pop_back();
    served_.emplace(job.key(), Served{.job = job, .slot = slot});
    return true;
}

void PipelinePlane::dismiss(const control::JobKey& job) {
    const auto found = served_.find(job);
    if (found == served_.end()) return;
    tables_->dismiss(job);
    free_slots_.push_back(found->second.slot);
    served_.erase(found);
}

void PipelinePlane::learn_place(const control::JobKey& job, const control::AdmittedPlace& place) {
    if (served_.contains(job)) tables_->learn_place(job, place);
}

void PipelinePlane::learn_group(const control::ChannelKey& channel, std::uint64_t group_number) {
    if (served_.contains(channel.of_job())) tables_->learn_group(channel, group_number);
}

void PipelinePlane::set_level(const control::JobKey& job, std::uint8_t level) {
    const auto found = served_.find(job);
    if (found == served_.end() || found->second.job.level == level) return;
    found->second.job.level = level;
    tables_->set_level(job, level);
}

std::vector<control::AdmittedJob> PipelinePlane::jobs() const {
    std::vector<control::AdmittedJob> all;
    for (const auto& [key, served] : served_) all.push_back(served.job);
    return all;
}

protocol::SwitchCounters PipelinePlane::events_in(std::uint16_t slot) const {
    protocol::SwitchCounters counters;
    for (std::uint32_t event = 0; event < ATP_EVENT_COUNT; ++event)
        counters.events[event] = bmv2_.count("events", slot * ATP_EVENT_COUNT + event);
    return counters;
}

std::optional<protocol::SwitchCounters> PipelinePlane::packets_of(const control::JobKey& job) const {
    const auto found = served_.find(job);
    if (found == served_.end()) return std::nullopt;
    return events_in(found->second.slot);
}

protocol::SwitchCounters PipelinePlane::packets() const {
    protocol::SwitchCounters counters = events_in(0);
    counters.forged = bmv2_.count("forged", 0);
    counters.no_room = bmv2_.count("no_room", 0);
    return counters;
}

}  // namespace atp::p4agent
