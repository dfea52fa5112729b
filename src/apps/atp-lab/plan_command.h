// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/command.h"

namespace atp::apps {

// `atp-lab plan`: estimates the gain of aggregation for jobs on a cluster.
[[nodiscard]] std::function<int()> register_plan(CLI::App& program);

}  // namespace atp::apps
