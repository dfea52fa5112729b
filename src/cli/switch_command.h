// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/command.h"

namespace atp::cli {

// `atp switch`: this machine aggregates.
[[nodiscard]] std::function<int()> register_switch(CLI::App& program);

}  // namespace atp::cli
