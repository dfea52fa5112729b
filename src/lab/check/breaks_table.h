// SPDX-License-Identifier: Apache-2.0
// The injected faults of protocol/breaks.h, each with the configuration that detects it fastest.
#pragma once

#include <span>
#include <string_view>

#include "check/configuration.h"

namespace atp::check {

struct Break {
    unsigned number = 0;  // argument of explore()
    std::string_view name;
    unsigned hazard = 0;  // number in docs/protocol.md
    std::string_view what;
    std::string_view configuration;  // with its quick budgets
};

[[nodiscard]] std::span<const Break> breaks();
[[nodiscard]] const Break* find_break(std::string_view name);

}  // namespace atp::check
