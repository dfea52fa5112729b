// SPDX-License-Identifier: Apache-2.0
#include "control/data_plane_agent.h"

#include <utility>

namespace atp::control {
namespace {

// Interval of Coverage::assess().
constexpr std::chrono::seconds time_between_checks(1);

}  // namespace

void DataPlaneAgent::set_tenants(std::shared_ptr<const Tenants> tenants) {
    tenants_ = std::move(tenants);
    admission_.set_tenants(tenants_);
    slices_.set_tenants(tenants_);
    for (const AdmittedJob& job : plane_.jobs()) name_sender(job);
}

std::string_view DataPlaneAgent::tenant_of(const AdmittedJob& job) const {
    const auto found = is_open(tenants_.get()) ? std::nullopt : tenants_->find(job.key_id);
    return found ? std::string_view(found->tenant->name) : std::string_view();
}

// No packet of a job reaches an aggregator before the job has its slice.
bool DataPlaneAgent::admit(const AdmittedJob& job, Time now) {
    AdmittedJob first = job;
    if (!is_open(tenants_.get())) first.level = ATP_LEVELS;
    if (!plane_.admit(first)) return false;
    name_sender(job);
    slices_.add(job.key(), tenant_of(job));
    slices_.handle_timeout(plane_, now);
    if (first.level != job.level) plane_.set_level(job.key(), job.level);
    return true;
}

void DataPlaneAgent::charge(const AdmittedJob& job, Time now) {
    plane_.set_key(job.key(), job.key_id);
    name_sender(job);
    slices_.add(job.key(), tenant_of(job));
    slices_.handle_timeout(plane_, now);
}

void DataPlaneAgent::name_sender(const AdmittedJob& job) {
    plane_.set_sender(job.key(), senders_.number_of(job.key(), tenant_of(job)));
}

// A job that was forwarded unaggregated gets another try.
void DataPlaneAgent::take_over(Time now) {
    const std::vector<AdmittedJob> jobs = plane_.jobs();
    for (AdmittedJob job : jobs) {
        job.level = level_;
        admission_.remember(job, now);
        name_sender(job);
        slices_.take_over(job.key(), tenant_of(job), plane_.slice_of(job.key()), now);
    }
    slices_.handle_timeout(plane_, now);
    for (const AdmittedJob& job : jobs) plane_.set_level(job.key(), level_);
}

void DataPlaneAgent::handle_message(const PassingMessage& message, Time now) {
    const InPathAgent::AgentChange change = admission_.handle_message(message, now);
    const ChannelKey channel{change.job.job, change.job.token, change.place.channel};
    if (change.change == InPathAgent::Change::admit) {
        if (!admit(change.job, now)) return admission_.reject(change.job.key());
    } else if (change.change == InPathAgent::Change::charge) {
        charge(change.job, now);
    }
    if (change.change == InPathAgent::Change::learn_group) plane_.learn_group(channel, change.group_number);
    if (change.member) plane_.learn_member(channel, *change.member);
    if (change.place.mask != 0) plane_.learn_place(change.job.key(), change.place);
}

void DataPlaneAgent::poll(Time now) {
    while (const auto job = admission_.poll_expired(now)) {
        plane_.dismiss(job->key());
        slices_.remove(job->key(), now);
        senders_.remove(job->key());
        coverage_.forget(job->job);
    }
    slices_.handle_timeout(plane_, now);
    if (now < checks_next_) return;
    checks_next_ = now + time_between_checks;
    assess(now);
}

void DataPlaneAgent::assess(Time now) {
    for (const AdmittedJob& job : plane_.jobs()) {
        const auto packets = plane_.packets_of(job.key());
        if (!packets) continue;
        const bool aggregates = coverage_.assess(job.job, *packets, now);
        plane_.set_level(job.key(), aggregates ? level_ : std::uint8_t{ATP_LEVELS});
    }
}

}  // namespace atp::control
