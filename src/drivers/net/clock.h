// SPDX-License-Identifier: Apache-2.0
// The clock of Time outside simulations: CLOCK_MONOTONIC, which changes of the system time do not affect.
#pragma once

#include <ctime>

#include "base/time.h"

namespace atp::net {

[[nodiscard]] inline Time now() {
    timespec at{};
    clock_gettime(CLOCK_MONOTONIC, &at);
    return Time(std::chrono::seconds(at.tv_sec) + std::chrono::nanoseconds(at.tv_nsec));
}

// `now` plus `duration`, at most `never`: a deadline does not wrap around.
[[nodiscard]] inline Time after(Time now, Duration duration) { return duration > never - now ? never : now + duration; }

// Limit for condition variables: they add a duration to their own clock, which an unlimited duration would overflow.
inline constexpr Duration longest_sleep = std::chrono::hours(1);

}  // namespace atp::net
