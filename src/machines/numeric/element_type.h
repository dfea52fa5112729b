// SPDX-License-Identifier: Apache-2.0
// Types of the elements in a caller's memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace atp::numeric {

// The enumerator values are hashed into packets, so they are part of the protocol:
// docs/spec/numbers.md#purpose-of-an-operation.
enum class ElementType : std::uint8_t { float32 = 0, float64 = 1, float16 = 2, bfloat16 = 3, int32 = 4, int64 = 5 };

inline constexpr std::array element_types{ElementType::float32,  ElementType::float64, ElementType::float16,
                                          ElementType::bfloat16, ElementType::int32,   ElementType::int64};

// Size of one element in memory, in bytes; also its alignment.
[[nodiscard]] std::size_t bytes_of(ElementType type);
// Integers are summed exactly, modulo 2^32 or 2^64; their average need not be an integer.
[[nodiscard]] bool is_integer(ElementType type);
// The name in the enumeration: "float32", "int64".
[[nodiscard]] std::string_view to_string(ElementType type);
[[nodiscard]] std::optional<ElementType> parse_element_type(std::string_view name);

}  // namespace atp::numeric
