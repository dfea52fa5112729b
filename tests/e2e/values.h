// SPDX-License-Identifier: Apache-2.0
// Tensors and their exact sums. The computation of the sums shares no code with the product, except the roundings to
// 16-bit floats, which have tests of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "fabric.h"

namespace atp::test {

using Bytes = std::vector<std::byte>;

// Floats within -1 to 1, integers over the whole range. Values differ between ranks and between seeds.
[[nodiscard]] Bytes tensor_of(numeric::ElementType type, std::uint32_t rank, std::size_t elements, std::uint32_t seed);
// Sum or average of all ranks' tensors, with every float as an integer of the scale.
[[nodiscard]] Bytes sum_of(numeric::ElementType type, comm::Reduction reduction, const std::vector<Bytes>& tensors,
                           double scale);
// The sum of all ranks' tensor_of().
[[nodiscard]] Bytes sum_of_ranks(numeric::ElementType type, comm::Reduction reduction, std::uint32_t world,
                                 std::size_t elements, std::uint32_t seed);

// "elements 3 to 17 differ, the first ..." or empty.
[[nodiscard]] std::string difference(const Bytes& expected, const Bytes& actual, std::size_t element_bytes);

// One all_reduce of tensor_of(). Fails the test if the operation fails or a bit is wrong.
void expect_sum(comm::Communicator& communicator, numeric::ElementType type, comm::Reduction reduction,
                std::size_t elements, std::uint32_t seed, bool in_place);
// float32 sums.
void expect_sum(comm::Communicator& communicator, std::size_t elements, std::uint32_t seed);

// In place: rank r passes part r of the values.
[[nodiscard]] Result<comm::Handle> gather_in_place(comm::Communicator& communicator, std::vector<float>& values,
                                                   Time deadline = never);

// Every operation twice, several in flight. Their results are exact at every scale.
void work_through(comm::Communicator& communicator);

}  // namespace atp::test
