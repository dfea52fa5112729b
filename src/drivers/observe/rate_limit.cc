// SPDX-License-Identifier: Apache-2.0
#include "observe/rate_limit.h"

#include <utility>

namespace atp::observe {

bool RateLimit::admit(std::size_t kind, Time now) {
    Kind& state = kinds_[kind];
    if (state.admitted == 0 || is_over(state, now)) {
        state.begin = now;
        state.admitted = 0;
    }
    if (state.admitted < config_.most) {
        ++state.admitted;
        return true;
    }
    ++state.suppressed;
    return false;
}

std::optional<RateLimit::Suppressed> RateLimit::poll_suppressed(Time now) {
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
        Kind& state = kinds_[kind];
        if (state.suppressed != 0 && (now == never || is_over(state, now))) {
            return Suppressed{.kind = kind, .count = std::exchange(state.suppressed, 0)};
        }
    }
    return std::nullopt;
}

}  // namespace atp::observe
