// SPDX-License-Identifier: Apache-2.0
// Lanes of each type of integers, added in 64 bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numeric/lanes16.h"
#include "numeric/lanes32_sums.h"
#include "numeric/lanes8.h"
#include "wire/format.h"

namespace atp::protocol {

using SumLanes = void (*)(const std::byte* lanes, std::size_t count, std::int64_t* sums);

// `type`: ATP_DTYPE_INT32, ATP_DTYPE_INT16 or ATP_DTYPE_INT8.
[[nodiscard]] inline SumLanes assignment_of(std::uint8_t type) {
    if (type == ATP_DTYPE_INT8) return numeric::sums_assign_int8;
    return type == ATP_DTYPE_INT16 ? numeric::sums_assign_int16 : numeric::sums_assign;
}

[[nodiscard]] inline SumLanes addition_of(std::uint8_t type) {
    if (type == ATP_DTYPE_INT8) return numeric::sums_add_int8;
    return type == ATP_DTYPE_INT16 ? numeric::sums_add_int16 : numeric::sums_add;
}

}  // namespace atp::protocol
