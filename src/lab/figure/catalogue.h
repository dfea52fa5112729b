// SPDX-License-Identifier: Apache-2.0
// Every figure, in the order of the page.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "figure/figure.h"

namespace atp::figure {

[[nodiscard]] std::span<const Figure* const> catalogue();
// nullptr where there is none.
[[nodiscard]] const Figure* find_figure(std::string_view id);
// Those that somebody who typed this may have meant.
[[nodiscard]] std::vector<std::string_view> ids_near(std::string_view text);

}  // namespace atp::figure
