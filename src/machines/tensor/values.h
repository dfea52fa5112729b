// SPDX-License-Identifier: Apache-2.0
// The numbers of a tensor that is not plain, without the way through lanes where the tensor permits it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "protocol/tensor.h"

namespace atp::tensor {

// Elements that are read in one step, on the stack.
inline constexpr std::size_t values_max = 512;

// All elements, if they lie in memory as float32; otherwise nullptr.
[[nodiscard]] const float* values_in_memory(const protocol::Tensor& tensor);

// Reads elements first, first + 1, ...: the numbers of load_floats(). Requires at most values_max elements.
void load_values(const protocol::Tensor& tensor, std::uint64_t first, std::span<float> values);

// The largest finite magnitude of these values, as magnitude_bits(); 0: none is finite.
[[nodiscard]] std::uint32_t largest_finite(std::span<const float> values);

// Calls visit(first, values) for elements first, first + 1, ...: once if they lie in memory, otherwise for each step.
// Ends with false when `visit` returns false.
template <class Visit>
bool visit_values(const protocol::Tensor& tensor, std::uint64_t first, std::uint64_t count, const Visit& visit) {
    if (const float* const values = values_in_memory(tensor)) return visit(first, std::span(values + first, count));
    std::array<float, values_max> buffer;
    for (; count != 0;) {
        const std::span values = std::span(buffer).first(std::min<std::uint64_t>(count, values_max));
        load_values(tensor, first, values);
        if (!visit(first, std::span<const float>(values))) return false;
        first += values.size();
        count -= values.size();
    }
    return true;
}

// Stores sums as store() does. Returns the largest of them as magnitude_bits().
std::uint32_t store_values(protocol::Tensor& tensor, std::uint64_t first, std::span<const std::byte> lanes);

}  // namespace atp::tensor
