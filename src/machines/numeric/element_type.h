// SPDX-License-Identifier: Apache-2.0
// What the elements of a caller's memory are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace atp::numeric {

// The numbers are hashed into packets, so they are part of the protocol: docs/protocol.md#purpose-of-an-operation.
enum class ElementType : std::uint8_t { float32 = 0, float64 = 1, float16 = 2, bfloat16 = 3, int32 = 4, int64 = 5 };

inline constexpr std::array element_types{ElementType::float32,  ElementType::float64, ElementType::float16,
                                          ElementType::bfloat16, ElementType::int32,   ElementType::int64};

// Of one element in memory; its alignment too.
[[nodiscard]] std::size_t bytes_of(ElementType type);
// Integers are summed modulo 2^32 or 2^64, to the last bit; their average is no integer.
[[nodiscard]] bool is_integer(ElementType type);
// "float32", "int64", ...: as in the enumeration.
[[nodiscard]] std::string_view to_string(ElementType type);
[[nodiscard]] std::optional<ElementType> parse_element_type(std::string_view name);

}  // namespace atp::numeric
