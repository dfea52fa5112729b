// SPDX-License-Identifier: Apache-2.0
// Reads the text of configurations.cc. Internal to this module.
#pragma once

#include <string_view>
#include <vector>

#include "check/configuration.h"

namespace atp::check {

struct ConfigurationEntry {
    Configuration configuration;  // without a budget
    FaultBudget full{};
    FaultBudget quick{};
    bool is_long = false;  // not for a test
};

// The entries refer to `table`. Throws std::logic_error for text that has no meaning.
[[nodiscard]] std::vector<ConfigurationEntry> read_configurations(std::string_view table);

}  // namespace atp::check
