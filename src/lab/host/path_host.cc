// SPDX-License-Identifier: Apache-2.0
#include "host/path_host.h"

#include <algorithm>

#include "protocol/breaks.h"
#include "wire/bytes.h"
#include "wire/control.h"

namespace atp::host {
inline namespace ATP_VARIANT {

PathHost::Passage PathHost::handle_packet(protocol::PacketBuffer& packet, const wire::Address& from,
                                          const wire::Address& to, Time now) {
    if (wire::control_type({packet.data, packet.size})) {
        const auto join = wire::decode<wire::Join>({packet.data, packet.size});
        if (join) add_credit({join->terms.job, join->terms.token}, packet.size);
        handle_message({.bytes = {packet.data, packet.size}, .from = from, .to = to, .is_plain = true}, now);
        return Passage::on;
    }
    const control::AdmittedJob* const job = packet.size < ATP_HEADER_BYTES ? nullptr : job_of(packet.data);
    if (job == nullptr) return Passage::on;
    if (wire::load_u8(packet.data + ATP_OFFSET_TYPE) == ATP_TYPE_GRADIENT) add_credit(job->key(), packet.size);
    if (job->level != level_) return Passage::on;
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
    const Admitted* const owner = group_of(number, token).first;
    return owner == nullptr ? nullptr : &owner->job;
}

std::pair<const PathHost::Admitted*, const PathHost::Group*> PathHost::group_of(std::uint32_t job,
                                                                                std::uint64_t number) const {
    for (const auto& [key, admitted] : jobs_) {
        if (key.job != job) continue;
        for (const auto& [channel, group] : admitted.groups) {
            if (group.number == number) return {&admitted, &group};
        }
    }
    return {nullptr, nullptr};
}

void PathHost::add_credit(const control::JobKey& job, std::size_t bytes) {
    const auto found = jobs_.find(job);
    if (found != jobs_.end()) atp_copy_credit_add(&found->second.credit, bytes);
}

std::vector<wire::Address> PathHost::copies_of(std::span<const std::byte> bytes, const wire::Address& to, Time now) {
    std::uint32_t job = 0;
    std::uint64_t number = 0;
    const auto joined = wire::decode<wire::Joined>(bytes);
    if (joined) {
        job = joined->job;
        number = joined->token;
    } else if (bytes.size() > ATP_HEADER_BYTES && wire::load_u8(bytes.data() + ATP_OFFSET_TYPE) == ATP_TYPE_ACK &&
               wire::load_u16(bytes.data() + ATP_OFFSET_WORKER) == ATP_WORKER_ALL) {
        job = wire::load_u32(bytes.data() + ATP_OFFSET_JOB);
        number = wire::load_u64(bytes.data() + ATP_OFFSET_TOKEN);
    }
    const auto [admitted, group] = group_of(job, number);
    std::vector<wire::Address> copies;
    if (group == nullptr || group->members.empty() || admitted->job.level != level_) return copies;
    // To all but the first member goes what another switch copied.
    if (group->members.begin()->second != to) return copies;
    for (const auto& [place, address] : group->members) {
        if (address != to || ATP_BREAK(copy_to_receiver)) copies.push_back(address);
    }
    const auto now_ns = static_cast<std::uint64_t>(now.time_since_epoch().count());
    Admitted& payer = jobs_.at(admitted->job.key());
    if (atp_copy_credit_spend(&payer.credit, copies.size() * bytes.size(), !joined, now_ns) == 0) copies.clear();
    return copies;
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
    if (found != jobs_.end()) found->second.groups[channel.channel].number = group_number;
}

void PathHost::learn_member(const control::ChannelKey& channel, const control::PassedMember& member) {
    const auto found = jobs_.find(channel.of_job());
    if (found != jobs_.end())
        found->second.groups[channel.channel].members.insert_or_assign(member.number, member.address);
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
