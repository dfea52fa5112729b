// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "numeric/element_type.h"

namespace atp::staging {

// An array of floats in a device's memory, owned by the caller.
struct Elements {
    numeric::ElementType type = numeric::ElementType::float32;
    void* data = nullptr;
    std::size_t count = 0;
};

// Limit of elements per step: enough that the fixed cost of a step is negligible, and few enough that the network
// starts early.
inline constexpr std::size_t elements_of_step = std::size_t{1} << 19U;

}  // namespace atp::staging
