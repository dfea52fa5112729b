// SPDX-License-Identifier: Apache-2.0
// Scale of a gradient: one byte for each power of two. 0 means the scale of the job.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "wire/format.h"

namespace atp::protocol {

inline constexpr std::uint8_t scale_of_job = 0;

// Byte of 2^exponent, or of the nearest power that has a byte.
[[nodiscard]] constexpr std::uint8_t scale_byte(int exponent) {
    return static_cast<std::uint8_t>(std::clamp(exponent + static_cast<int>(ATP_SCALE_ONE), 1, 255));
}

[[nodiscard]] inline double scale_from(std::uint8_t byte, double job_scale) {
    return byte == scale_of_job ? job_scale : std::ldexp(1.0, int{byte} - static_cast<int>(ATP_SCALE_ONE));
}

}  // namespace atp::protocol
