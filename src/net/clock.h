// SPDX-License-Identifier: Apache-2.0
// The clock behind protocol::Time wherever packets are real: CLOCK_MONOTONIC, which no clock setting moves.
#pragma once

#include <ctime>

#include "protocol/time.h"

namespace atp::net {

[[nodiscard]] inline protocol::Time now() {
    timespec at{};
    clock_gettime(CLOCK_MONOTONIC, &at);
    return protocol::Time(std::chrono::seconds(at.tv_sec) + std::chrono::nanoseconds(at.tv_nsec));
}

// never stays never, and a deadline does not wrap around.
[[nodiscard]] inline protocol::Time after(protocol::Time now, protocol::Duration duration) {
    return duration > protocol::never - now ? protocol::never : now + duration;
}

// For condition variables, which add what they are given to their own clock: "for ever" would overflow it.
inline constexpr protocol::Duration longest_sleep = std::chrono::hours(1);

}  // namespace atp::net
