// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/command.h"

namespace atp::apps {

// `atp top`: shows switches and jobs in a terminal.
[[nodiscard]] std::function<int()> register_top(CLI::App& program);

}  // namespace atp::apps
