// SPDX-License-Identifier: Apache-2.0
// Form and scale of a fragment. The form is the type of its integers. The scale is one byte for each power of two; 0
// means the scale of the job.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "wire/format.h"

namespace atp::protocol {

inline constexpr std::uint8_t scale_of_job = 0;
// At 2^127 a number of 2^-96 or more has no integer, so it is summed exactly. All workers send float32 then, even if
// their own numbers fit integers, so that the server need not ask for it.
inline constexpr std::uint8_t exact_scale = 255;

// Byte of 2^exponent, or of the nearest power that has a byte.
[[nodiscard]] constexpr std::uint8_t scale_byte(int exponent) {
    return static_cast<std::uint8_t>(std::clamp(exponent + static_cast<int>(ATP_SCALE_ONE), 1, 255));
}

[[nodiscard]] inline double scale_from(std::uint8_t byte, double job_scale) {
    return byte == scale_of_job ? job_scale : std::ldexp(1.0, int{byte} - static_cast<int>(ATP_SCALE_ONE));
}

// Part of a gradient's argument. It keeps gradients of different forms or scales from being added.
[[nodiscard]] constexpr std::uint16_t mark_of(std::uint8_t form, std::uint8_t scale) {
    const std::uint32_t form_bits = form == ATP_DTYPE_INT16 ? 0x100U : form == ATP_DTYPE_INT8 ? 0x200U : 0U;
    return static_cast<std::uint16_t>(scale | form_bits);
}

// Bytes of an element of this type.
[[nodiscard]] inline std::size_t element_bytes(std::uint8_t type) {
    return ATP_LANE_BYTES / atp_elements_per_word(type);
}
// Words that hold this many elements. The last one may have unused elements.
[[nodiscard]] inline std::size_t words_of(std::size_t elements, std::uint8_t type) {
    const std::size_t each = atp_elements_per_word(type);
    return (elements + each - 1) / each;
}

}  // namespace atp::protocol
