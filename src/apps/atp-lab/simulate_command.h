// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/command.h"

namespace atp::apps {

// `atp-lab simulate`: simulates one run, or a swarm of runs.
[[nodiscard]] std::function<int()> register_simulate(CLI::App& program);

}  // namespace atp::apps
