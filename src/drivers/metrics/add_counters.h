// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/counters.h"
#include "metrics/exposition.h"

namespace atp::metrics {

// A counter of each row of the table. `prefix`: of the names. Metrics give times in seconds.
template <class Counters, std::size_t count>
void add_counters(std::string_view prefix, const CounterFields<Counters, count>& fields,
                  const std::array<std::string_view, count>& helps, const Counters& counters, const Labels& labels,
                  Exposition& to) {
    constexpr std::string_view microseconds = "_us";
    constexpr std::string_view microseconds_help = "Microseconds";
    constexpr double in_a_second = 1e6;
    for (std::size_t i = 0; i < count; ++i) {
        std::string name = fmt::format("atp_{}_{}", prefix, fields[i].name);
        std::string help{helps[i]};
        auto value = static_cast<double>(fields[i].value_of(counters));
        if (name.ends_with(microseconds)) {
            name.replace(name.size() - microseconds.size(), microseconds.size(), "_seconds");
            if (help.starts_with(microseconds_help)) help.replace(0, microseconds_help.size(), "Seconds");
            value /= in_a_second;
        }
        to.add({name, Kind::counter, help}, labels, value);
    }
}

}  // namespace atp::metrics
