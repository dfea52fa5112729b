// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "apps/common/command.h"

namespace atp::apps {

// Adds the command `key`, which writes key files.
[[nodiscard]] std::function<int()> register_key(CLI::App& program);

}  // namespace atp::apps
