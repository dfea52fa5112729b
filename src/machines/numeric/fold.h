// SPDX-License-Identifier: Apache-2.0
// Reductions of small arrays that each rank computes by itself, from the elements of all ranks in rank order.
//
// Integers are added and multiplied modulo 2^bits. Floats of 16 bits are added and multiplied as float32 and rounded
// after each step. A NaN of any rank is the minimum and the maximum; of equal elements, such as 0 and -0, these keep
// the earlier one. In an array of `boolean`, each byte other than 0 is true; a sum is a logical "or", a product "and".
// The functions have no state, so any thread may call them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "numeric/element_type.h"

namespace atp::numeric {

// The values of both enumerations are hashed into packets, so they are part of the protocol:
// docs/spec/numbers.md#purpose-of-an-operation. They continue those of ElementType and of comm::Reduction.
enum class FoldType : std::uint8_t {
    float32 = 0,
    float64 = 1,
    float16 = 2,
    bfloat16 = 3,
    int32 = 4,
    int64 = 5,
    int8 = 6,
    uint8 = 7,
    int16 = 8,
    boolean = 9
};
enum class FoldOperation : std::uint8_t {
    minimum = 3,
    maximum = 4,
    product = 5,
    bit_and = 6,
    bit_or = 7,
    bit_xor = 8,
    sum = 9
};

[[nodiscard]] FoldType fold_type_of(ElementType type);
// Size of one element in memory, in bytes; also its alignment.
[[nodiscard]] std::size_t bytes_of(FoldType type);
// "unknown" for values that a peer may send, but that have no meaning.
[[nodiscard]] std::string_view to_string(FoldType type);
[[nodiscard]] std::string_view to_string(FoldOperation operation);
// False: the operation combines bits, but the elements are floats.
[[nodiscard]] bool can_fold(FoldType type, FoldOperation operation);

// Combines each element of `into`, which comes from earlier ranks, with that of `from`. Both are aligned to their type,
// have equal sizes and do not overlap. Requires can_fold().
void fold(FoldType type, FoldOperation operation, std::span<std::byte> into, std::span<const std::byte> from);

}  // namespace atp::numeric
