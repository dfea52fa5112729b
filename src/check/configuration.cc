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

const Configuration* find_configuration(std::string_view name) {
    for (const auto& set : {default_configurations(), quick_configurations()}) {
        const auto found = std::ranges::find(set, name, &Configuration::name);
        if (found != set.end()) return &*found;
    }
    return nullptr;
}

}  // namespace atp::check
