// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/command.h"

namespace atp::apps {

// `atp stats`: prints the counters of a switch.
[[nodiscard]] std::function<int()> register_stats(CLI::App& program);

}  // namespace atp::apps
