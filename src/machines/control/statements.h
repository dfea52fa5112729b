// SPDX-License-Identifier: Apache-2.0
// What members say that they called, after their operations differed (docs/spec/joining.md#joined).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "wire/control.h"

namespace atp::control {

// Adds the statements of another member, or of a switch, to `all`. Equal texts become one, which names the lowest
// place. The text that most members state comes first; of equally many, the one with the lowest place. The result has
// at most wire::max_statements texts.
void add_statements(std::vector<wire::Statement>& all, std::span<const wire::Statement> more);

// Two of them end in `place`, so they are about one operation, and differ.
[[nodiscard]] bool differ_at(std::span<const wire::Statement> statements, std::string_view place);

// Members that made a statement.
[[nodiscard]] std::uint32_t count_of(std::span<const wire::Statement> statements);

}  // namespace atp::control
