// SPDX-License-Identifier: Apache-2.0
// The model has no clock. Time does not advance while packets are delivered. The expiry of a timer, a deadline or an
// aggregator's age is a separate action that may happen at any moment. A point in time therefore has one of four
// values: past, timer, deadline or never.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/time.h"

namespace atp::check {

inline constexpr Time model_now{std::chrono::hours(1)};
inline constexpr Duration model_timeout = std::chrono::milliseconds(1);
// Upper bound of an armed timer: a worker adds up to half of its timeout.
inline constexpr Duration model_timer = 2 * model_timeout;
inline constexpr Duration model_ageing = std::chrono::milliseconds(500);
inline constexpr Duration model_deadline = std::chrono::hours(1);
// At after_timeout, every timer has expired. At after_ageing, every aggregator counts as abandoned too. At
// after_deadline, every deadline has passed too.
inline constexpr Time after_timeout = model_now + model_timer;
inline constexpr Time after_ageing = model_now + model_ageing + model_timer;
inline constexpr Time after_deadline = model_now + model_deadline;

// With a clock, time passes in ticks (Configuration::has_clock).
inline constexpr Duration model_tick = std::chrono::milliseconds(50);

enum class Moment : std::uint8_t { past, timer, deadline, never };

[[nodiscard]] constexpr Moment moment_of(Time time, Time now) {
    if (time == never) return Moment::never;
    if (time <= now) return Moment::past;
    return time <= now + model_timer ? Moment::timer : Moment::deadline;
}

[[nodiscard]] constexpr Time time_of(Moment moment) {
    switch (moment) {
        case Moment::past: return model_now;
        case Moment::timer: return after_timeout;
        case Moment::deadline: return after_deadline;
        default: return never;
    }
}

}  // namespace atp::check
