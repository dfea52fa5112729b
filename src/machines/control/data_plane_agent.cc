// SPDX-License-Identifier: Apache-2.0
#include "control/data_plane_agent.h"

namespace atp::control {
namespace {

// Interval of Coverage::assess().
constexpr std::chrono::seconds time_between_checks(1);

}  // namespace

// A job that was forwarded unaggregated gets another try.
void DataPlaneAgent::take_over(Time now) {
    for (AdmittedJob job : plane_.jobs()) {
        plane_.set_level(job.key(), job.level = level_);
        admission_.remember(job, now);
    }
}

void DataPlaneAgent::handle_message(const PassingMessage& message, Time now) {
    const InPathAgent::AgentChange change = admission_.handle_message(message, now);
    if (change.change == InPathAgent::Change::admit) {
        if (!plane_.admit(change.job)) return admission_.reject(change.job.key());
    } else if (change.change == InPathAgent::Change::learn_group) {
        plane_.learn_group({change.job.job, change.job.token, change.place.channel}, change.group_number);
    }
    if (change.place.mask != 0) plane_.learn_place(change.job.key(), change.place);
}

void DataPlaneAgent::poll(Time now) {
    while (const auto job = admission_.poll_expired(now)) {
        plane_.dismiss(job->key());
        coverage_.forget(job->job);
    }
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
