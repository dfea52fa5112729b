// SPDX-License-Identifier: Apache-2.0
// Time of the state machines: monotonic, in nanoseconds, passed as an argument. The state machines read no clock.
#pragma once

#include <chrono>
#include <cstdint>

namespace atp {

struct Clock {
    using rep = std::int64_t;
    using period = std::nano;
    using duration = std::chrono::nanoseconds;
    using time_point = std::chrono::time_point<Clock>;
    static constexpr bool is_steady = true;
};

using Duration = Clock::duration;
using Time = Clock::time_point;

inline constexpr Time never = Time::max();

// For reports.
[[nodiscard]] constexpr double to_seconds(Duration duration) { return static_cast<double>(duration.count()) / 1e9; }
[[nodiscard]] constexpr double to_milliseconds(Duration duration) {
    return static_cast<double>(duration.count()) / 1e6;
}
[[nodiscard]] constexpr double to_microseconds(Duration duration) {
    return static_cast<double>(duration.count()) / 1e3;
}

}  // namespace atp
