// SPDX-License-Identifier: Apache-2.0
#include "host/path_host.h"

#include <algorithm>

#include "wire/bytes.h"
#include "wire/control.h"

namespace atp::host {
inline namespace ATP_VARIANT {

PathHost::Passage PathHost::handle_packet(protocol::PacketBuffer& packet, const wire::Address& from,
                                          const wire::Address& to, Time now) {
    if (wire::control_type({packet.data, packet.size})) {
        handle_message({.bytes = {packet.data, packet.size}, .from = from, .to = to}, now);
        return Passage::on;
    }
    const control::AdmittedJob* const job = packet.size < ATP_HEADER_BYTES ? nullptr : job_of(packet.data);
    if (job == nullptr || job->level != level_) return Passage::on;
    std::byte* const token = packet.data + ATP_OFFSET_TOKEN;
    const std::uint64_t carried = wire::load_u64(token);
    const bool asks = wire::load_u8(packet.data + ATP_OFFSET_TYPE) == ATP_TYPE_FLUSH;
    wire::store_u64(token, job->token);
    table_.handle_packet(packet, now);
    wire::store_u64(token, carried);
    if (packet.verdict.route == protocol::Route::drop) return Passage::dropped;
    return asks && packet.verdict.route == protocol::Route::up ? Passage::back : Passage::on;
}

const control::AdmittedJob* PathHost::job_of(const std::byte* packet) const {
    const std::uint32_t number = wire::load_u32(packet + ATP_OFFSET_JOB);
    const std::uint64_t token = wire::load_u64(packet + ATP_OFFSET_TOKEN);
    if (const auto found = jobs_.find({number, token}); found != jobs_.end()) return &found->second.job;
    const std::uint16_t channel = wire::load_u16(packet + ATP_OFFSET_CHANNEL);
    const auto found = std::ranges::find_if(jobs_, [&](const auto& entry) {
        const auto& groups = entry.second.groups;
        const auto group = entry.first.job == number ? groups.find(channel) : groups.end();
        return group != groups.end() && group->second == token;
    });
    return found == jobs_.end() ? nullptr : &found->second.job;
}

// ---------------------------------------------------------------------------------------------------------- Data plane

bool PathHost::admit(const control::AdmittedJob& job) {
    if (!table_.admit(job.job, job.token, job.level)) return false;
    jobs_[job.key()] = {.job = job};
    return true;
}

void PathHost::dismiss(const control::JobKey& job) {
    table_.dismiss(job.job, job.token);
    jobs_.erase(job);
}

void PathHost::learn_group(const control::ChannelKey& channel, std::uint64_t group_number) {
    const auto found = jobs_.find(channel.of_job());
    if (found != jobs_.end()) found->second.groups[channel.channel] = group_number;
}

void PathHost::set_level(const control::JobKey& job, std::uint8_t level) {
    const auto found = jobs_.find(job);
    if (found != jobs_.end()) found->second.job.level = level;
}

std::vector<control::AdmittedJob> PathHost::jobs() const {
    std::vector<control::AdmittedJob> jobs;
    for (const auto& [key, admitted] : jobs_) jobs.push_back(admitted.job);
    return jobs;
}

std::optional<protocol::SwitchCounters> PathHost::packets_of(const control::JobKey& job) const {
    const protocol::SwitchCounters* const counters = table_.job_counters(job.job, job.token);
    return counters == nullptr ? std::nullopt : std::optional(*counters);
}

}  // namespace ATP_VARIANT
}  // namespace atp::host
