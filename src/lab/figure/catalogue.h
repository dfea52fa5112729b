// SPDX-License-Identifier: Apache-2.0
// All figures, in the order of the page.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "figure/figure.h"

namespace atp::figure {

[[nodiscard]] std::span<const Figure* const> catalogue();
// nullptr: unknown id.
[[nodiscard]] const Figure* find_figure(std::string_view id);
// Ids that are similar to a mistyped one.
[[nodiscard]] std::vector<std::string_view> ids_near(std::string_view text);

}  // namespace atp::figure
