// SPDX-License-Identifier: Apache-2.0
// The form in which the scaled numbers of a job travel.
#pragma once

#include <cstdint>

#include "numeric/element_type.h"
#include "wire/format.h"

namespace atp::tensor {

// The scale at which the float32 numbers of a tensor travel.
enum class Scaling : std::uint8_t {
    fixed,    // the scale of the job
    dynamic,  // one for each span, which fits the sums of the same span in an earlier operation
};

// The type of a scaled number in a packet.
enum class LaneType : std::uint8_t {
    int32,
    int16,
    automatic,  // int16 for bfloat16 and float16, unless the scale is fixed; int32 for others
    int8,
};

// True for types that all scaled numbers have, whatever their elements are.
[[nodiscard]] constexpr bool is_narrow(LaneType type) { return type == LaneType::int16 || type == LaneType::int8; }

struct NumberForm {
    double scale = 1e8;  // of the job
    Scaling scaling = Scaling::fixed;
    LaneType lane_type = LaneType::int32;

    // Type of the integers of a tensor with such elements, as ATP_DTYPE_*.
    [[nodiscard]] std::uint8_t form_of(numeric::ElementType type) const {
        if (lane_type == LaneType::int8) return ATP_DTYPE_INT8;
        const bool is_half = type == numeric::ElementType::bfloat16 || type == numeric::ElementType::float16;
        const bool fits = is_half && scaling == Scaling::dynamic;
        const bool narrow = lane_type == LaneType::int16 || (lane_type == LaneType::automatic && fits);
        return narrow ? ATP_DTYPE_INT16 : ATP_DTYPE_INT32;
    }
};

}  // namespace atp::tensor
