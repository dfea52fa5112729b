// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/command.h"

namespace atp::apps {

// Adds the command `drain`, which ends a switch after its last job.
[[nodiscard]] std::function<int()> register_drain(CLI::App& program);

}  // namespace atp::apps
