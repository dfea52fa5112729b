// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/command.h"

namespace atp::apps {

// `atp doctor`: detects common faults of hosts and networks, and prints how to fix them.
[[nodiscard]] std::function<int()> register_doctor(CLI::App& program);

}  // namespace atp::apps
