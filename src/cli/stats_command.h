// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/command.h"

namespace atp::cli {

// `atp stats`: what a switch counts.
[[nodiscard]] std::function<int()> register_stats(CLI::App& program);

}  // namespace atp::cli
