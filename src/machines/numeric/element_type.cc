// SPDX-License-Identifier: Apache-2.0
#include "numeric/element_type.h"

#include <algorithm>

namespace atp::numeric {
namespace {

struct Description {
    std::string_view name;
    std::size_t bytes;
    bool integer;
};

// Indexed by the type.
constexpr std::array<Description, element_types.size()> descriptions{{{"float32", 4, false},
                                                                      {"float64", 8, false},
                                                                      {"float16", 2, false},
                                                                      {"bfloat16", 2, false},
                                                                      {"int32", 4, true},
                                                                      {"int64", 8, true}}};

const Description& describe(ElementType type) { return descriptions.at(static_cast<std::size_t>(type)); }

}  // namespace

std::size_t bytes_of(ElementType type) { return describe(type).bytes; }

bool is_integer(ElementType type) { return describe(type).integer; }

std::string_view to_string(ElementType type) { return describe(type).name; }

std::optional<ElementType> parse_element_type(std::string_view name) {
    const auto* const found = std::ranges::find(element_types, name, [](ElementType type) { return to_string(type); });
    return found == element_types.end() ? std::nullopt : std::optional(*found);
}

}  // namespace atp::numeric
