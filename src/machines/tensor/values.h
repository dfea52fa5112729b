// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "protocol/tensor.h"

namespace atp::tensor {

// Elements that are read in one step, on the stack.
inline constexpr std::size_t values_max = 512;

// Reads elements first, first + 1, ... of a tensor that is not plain: the numbers of load_floats(), without the way
// through lanes where the tensor permits it. Requires at most values_max elements.
void load_values(const protocol::Tensor& tensor, std::uint64_t first, std::span<float> values);

// Stores sums as store() does, likewise. `lanes` are the same sums as lanes.
void store_values(protocol::Tensor& tensor, std::uint64_t first, std::span<const float> sums,
                  std::span<const std::byte> lanes);

}  // namespace atp::tensor
