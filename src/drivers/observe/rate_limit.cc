// SPDX-License-Identifier: Apache-2.0
#include "observe/rate_limit.h"

#include <utility>

namespace atp::observe {

bool RateLimit::admit(std::size_t kind, Time now, std::uint64_t source) {
    Kind& state = kinds_[kind];
    Period& all = source == 0 ? state.own : state.sourced;
    const std::uint32_t most = source == 0 ? config_.most : busy_sources * config_.most;
    Source& place = sources_[(source + kind) % most_sources];
    if (source != 0 && (place.source != source || place.kind != kind))
        place = {.source = source, .kind = kind, .period = {}};
    if (is_spent(all, most, now) || (source != 0 && is_spent(place.period, config_.most, now))) {
        ++state.suppressed;
        return false;
    }
    count(all, now);
    if (source != 0) count(place.period, now);
    return true;
}

void RateLimit::count(Period& period, Time now) const {
    if (period.admitted == 0 || is_over(period, now)) period = {.begin = now, .admitted = 0};
    ++period.admitted;
}

std::optional<RateLimit::Suppressed> RateLimit::poll_suppressed(Time now) {
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
        Kind& state = kinds_[kind];
        if (state.suppressed != 0 && (now == never || (is_over(state.own, now) && is_over(state.sourced, now)))) {
            return Suppressed{.kind = kind, .count = std::exchange(state.suppressed, 0)};
        }
    }
    return std::nullopt;
}

}  // namespace atp::observe
