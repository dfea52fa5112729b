// SPDX-License-Identifier: Apache-2.0
// Shared by tests of reduce-scatter, all-gather and reduce.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "fabric.h"
#include "placements.h"

namespace atp::test {

using comm::Communicator;
using comm::Reduction;
using numeric::ElementType;
using Sizes = std::vector<std::size_t>;  // of the blocks, by rank

// Elements before the block of this rank.
[[nodiscard]] inline std::size_t first_of(const Sizes& sizes, std::uint32_t rank) {
    return std::reduce(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(rank));
}

// Sums the blocks of all ranks; `part` gets the own one. If it fails, returns false and fails the test.
inline bool scatters(Communicator& communicator, const std::vector<float>& input, std::vector<float>& part,
                     const Sizes& sizes, Reduction reduction = Reduction::sum) {
    return succeeds(communicator.reduce_scatter(input.data(), part.data(), sizes, ElementType::float32, reduction));
}

}  // namespace atp::test
