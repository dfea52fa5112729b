// SPDX-License-Identifier: Apache-2.0
// The clock behind Time wherever packets are real: CLOCK_MONOTONIC, which no clock setting moves.
#pragma once

#include <ctime>

#include "base/time.h"

namespace atp::net {

[[nodiscard]] inline Time now() {
    timespec at{};
    clock_gettime(CLOCK_MONOTONIC, &at);
    return Time(std::chrono::seconds(at.tv_sec) + std::chrono::nanoseconds(at.tv_nsec));
}

// never stays never, and a deadline does not wrap around.
[[nodiscard]] inline Time after(Time now, Duration duration) { return duration > never - now ? never : now + duration; }

// For condition variables, which add what they are given to their own clock: "for ever" would overflow it.
inline constexpr Duration longest_sleep = std::chrono::hours(1);

}  // namespace atp::net
