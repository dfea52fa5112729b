// SPDX-License-Identifier: Apache-2.0
// Lanes of each type of integers, added in 64 bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numeric/lanes32_sums.h"
#include "numeric/narrow_lanes.h"
#include "wire/format.h"

namespace atp::protocol {

using SumLanes = void (*)(const std::byte* lanes, std::size_t count, std::int64_t* sums);

// `type`: ATP_DTYPE_INT32, ATP_DTYPE_INT16 or ATP_DTYPE_INT8.
[[nodiscard]] inline SumLanes assignment_of(std::uint8_t type) {
    if (type == ATP_DTYPE_INT8) return numeric::int8_lanes().assign_sums;
    return type == ATP_DTYPE_INT16 ? numeric::int16_lanes().assign_sums : numeric::sums_assign;
}

[[nodiscard]] inline SumLanes addition_of(std::uint8_t type) {
    if (type == ATP_DTYPE_INT8) return numeric::int8_lanes().add_sums;
    return type == ATP_DTYPE_INT16 ? numeric::int16_lanes().add_sums : numeric::sums_add;
}

}  // namespace atp::protocol
