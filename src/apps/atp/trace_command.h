// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/command.h"

namespace atp::apps {

// Adds the command `trace`, which shows traces of switches, ranks and simulations.
[[nodiscard]] std::function<int()> register_trace(CLI::App& program);

}  // namespace atp::apps
