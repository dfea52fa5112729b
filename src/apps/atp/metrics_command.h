// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/command.h"

namespace atp::apps {

// `atp metrics`: serves the counters of switches over HTTP.
[[nodiscard]] std::function<int()> register_metrics(CLI::App& program);

}  // namespace atp::apps
