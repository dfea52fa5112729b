// SPDX-License-Identifier: Apache-2.0
// Counters that people see as one number, here and on the live page.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/counters.h"

namespace atp::metrics {

// tools/write_events writes what is shown from src/events.toml.
inline constexpr std::string_view added_counters[] = {"claimed", "added", "completed", "single"};
inline constexpr std::string_view passed_counters[] = {"collisions", "bypassed", "late", "misfits"};
inline constexpr std::string_view resent_counters[] = {"resends", "fetched"};
inline constexpr std::string_view dropped_counters[] = {"dropped_by_kernel", "refused_by_kernel", "overrun"};
// End of the written part.

// Of the counters with these names.
template <class Counters, std::size_t count>
[[nodiscard]] std::uint64_t sum_of(const CounterFields<Counters, count>& fields, const Counters& counters,
                                   std::span<const std::string_view> names) {
    std::uint64_t sum = 0;
    for (const auto& field : fields) {
        if (std::ranges::find(names, field.name) != names.end()) sum += field.value_of(counters);
    }
    return sum;
}

}  // namespace atp::metrics
