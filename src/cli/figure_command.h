// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/command.h"

namespace atp::cli {

// `atp figure`: the papers' figures, drawn again and held against what is claimed.
[[nodiscard]] std::function<int()> register_figure(CLI::App& program);

}  // namespace atp::cli
