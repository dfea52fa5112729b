// SPDX-License-Identifier: Apache-2.0
// All figures, in the order of the page.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "figure/figure.h"

namespace atp::figure {

using Catalogue = std::span<const Figure* const>;

[[nodiscard]] Catalogue catalogue();
// The figures on real packets. They have the ids, titles and claims of the simulated ones.
[[nodiscard]] Catalogue real_catalogue();
// nullptr: unknown id.
[[nodiscard]] const Figure* find_figure(std::string_view id, Catalogue figures = catalogue());
// Ids that are similar to a mistyped one.
[[nodiscard]] std::vector<std::string_view> ids_near(std::string_view text, Catalogue figures = catalogue());

}  // namespace atp::figure
