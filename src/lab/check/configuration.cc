// SPDX-License-Identifier: Apache-2.0
#include "check/configuration.h"

#include <algorithm>
#include <numeric>

#include "wire/format.h"

namespace atp::check {

unsigned Configuration::fragments() const { return std::accumulate(tensors.begin(), tensors.end(), 0U); }

unsigned Configuration::workers() const {
    return std::accumulate(units.begin(), units.end(), 0U,
                           [](unsigned sum, const UnitLayout& unit) { return sum + unit.workers; });
}

std::uint16_t Configuration::lanes() const {
    if (ack_lists < 2) return model_lanes;
    return static_cast<std::uint16_t>((ack_lists - 1) * ATP_LISTED_ACK_LANES);
}

const Configuration* find_configuration(std::string_view name, Extent extent) {
    const auto all = configurations(extent);
    const auto found = std::ranges::find(all, name, &Configuration::name);
    return found == all.end() ? nullptr : &*found;
}

}  // namespace atp::check
