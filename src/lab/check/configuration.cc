// SPDX-License-Identifier: Apache-2.0
#include "check/configuration.h"

#include <algorithm>
#include <numeric>

namespace atp::check {

unsigned Configuration::fragments() const { return std::accumulate(tensors.begin(), tensors.end(), 0U); }

unsigned Configuration::workers() const {
    return std::accumulate(units.begin(), units.end(), 0U,
                           [](unsigned sum, const UnitLayout& unit) { return sum + unit.workers; });
}

const Configuration* find_configuration(std::string_view name, Extent extent) {
    const auto all = configurations(extent);
    const auto found = std::ranges::find(all, name, &Configuration::name);
    return found == all.end() ? nullptr : &*found;
}

}  // namespace atp::check
