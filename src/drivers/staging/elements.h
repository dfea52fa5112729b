// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "numeric/element_type.h"

namespace atp::staging {

// Of floats, in a device's memory.
struct Elements {
    numeric::ElementType type = numeric::ElementType::float32;
    void* data = nullptr;
    std::size_t count = 0;
};

// The elements that a device converts in one step, at most: enough that what a step costs does not count, and few
// enough that the network begins soon.
inline constexpr std::size_t elements_of_step = std::size_t{1} << 19U;

}  // namespace atp::staging
