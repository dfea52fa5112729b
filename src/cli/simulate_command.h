// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/command.h"

namespace atp::cli {

// `atp simulate`: one run, or a swarm of them.
[[nodiscard]] std::function<int()> register_simulate(CLI::App& program);

}  // namespace atp::cli
