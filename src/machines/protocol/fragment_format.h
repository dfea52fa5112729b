// SPDX-License-Identifier: Apache-2.0
// Powers of two as a gradient's scale: a byte each. 0 is none of them, but stands for the scale of the job.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "wire/format.h"

namespace atp::protocol {

inline constexpr std::uint8_t scale_of_job = 0;

// The byte of 2^exponent, or of the nearest power that has one.
[[nodiscard]] constexpr std::uint8_t scale_byte(int exponent) {
    return static_cast<std::uint8_t>(std::clamp(exponent + static_cast<int>(ATP_SCALE_ONE), 1, 255));
}

[[nodiscard]] inline double scale_from(std::uint8_t byte, double job_scale) {
    return byte == scale_of_job ? job_scale : std::ldexp(1.0, int{byte} - static_cast<int>(ATP_SCALE_ONE));
}

}  // namespace atp::protocol
