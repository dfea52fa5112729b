// SPDX-License-Identifier: Apache-2.0
// The injected faults of protocol/breaks.h, control/breaks.h and endpoint/breaks.h, each with the configuration that
// detects it fastest.
#pragma once

#include <span>
#include <string_view>

#include "check/configuration.h"

namespace atp::check {

struct Break {
    unsigned number = 0;  // argument `active_break` of explore()
    std::string_view name;
    unsigned hazard = 0;  // its number in docs/spec/hazards.md
    std::string_view what;
    std::string_view configuration;  // detects the fault, with its quick budgets
};

[[nodiscard]] std::span<const Break> breaks();
[[nodiscard]] const Break* find_break(std::string_view name);

}  // namespace atp::check
