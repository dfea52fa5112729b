// SPDX-License-Identifier: Apache-2.0
// The deliberate mistakes of protocol/breaks.h, each with the configuration that shows it soonest.
#pragma once

#include <span>
#include <string_view>

#include "check/configuration.h"

namespace atp::check {

struct Break {
    unsigned number = 0;  // as explore() takes it
    std::string_view name;
    unsigned hazard = 0;  // of docs/protocol.md
    std::string_view what;
    std::string_view configuration;  // with its quick budgets
};

[[nodiscard]] std::span<const Break> breaks();
[[nodiscard]] const Break* find_break(std::string_view name);

}  // namespace atp::check
