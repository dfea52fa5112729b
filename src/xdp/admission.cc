// SPDX-License-Identifier: Apache-2.0
#include "xdp/admission.h"

#include <algorithm>

#include "wire/control.h"

namespace atp::xdp {

namespace {

bool passes_here(const wire::Join& join) {
    return join.level < ATP_LEVELS && join.terms.protocol == wire::ChannelProtocol::atp;
}

}  // namespace

void Admission::remember(const AdmittedJob& job, protocol::Time now) {
    heard_.emplace(job.job, Heard{.job = job, .last = now});
}

Admission::Verdict Admission::handle_message(std::span<const std::byte> message, protocol::Time now) {
    if (const auto join = wire::decode_join(message); join && passes_here(*join)) {
        const AdmittedJob job{.job = join->terms.job, .token = join->terms.token, .level = join->level};
        const auto known = heard_.find(job.job);
        if (known != heard_.end()) {
            const bool same = known->second.job.token == job.token && known->second.job.level == job.level;
            if (same) known->second.last = now;
            return {};
        }
        if (heard_.size() >= jobs_limit_) return {};
        remember(job, now);
        return {.change = Change::admit, .job = job};
    }
    if (const auto leave = wire::decode_leave(message)) {
        const auto known = heard_.find(leave->job);
        if (known == heard_.end() || known->second.job.token != leave->token) return {};
        const AdmittedJob job = known->second.job;
        heard_.erase(known);
        return {.change = Change::dismiss, .job = job};
    }
    return {};
}

std::optional<AdmittedJob> Admission::poll_expired(protocol::Time now) {
    const auto silent = std::ranges::find_if(heard_, [&](const auto& each) { return now - each.second.last > hold_; });
    if (silent == heard_.end()) return std::nullopt;
    const AdmittedJob job = silent->second.job;
    heard_.erase(silent);
    return job;
}

}  // namespace atp::xdp
