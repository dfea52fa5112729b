// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/command.h"

namespace atp::cli {

// `atp check`: the model checker, over the shipped machines or over deliberately broken ones.
[[nodiscard]] std::function<int()> register_check(CLI::App& program);

}  // namespace atp::cli
