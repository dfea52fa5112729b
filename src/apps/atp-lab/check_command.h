// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/command.h"

namespace atp::apps {

// `atp-lab check`: the model checker, for the shipped machines or for machines with an injected fault.
[[nodiscard]] std::function<int()> register_check(CLI::App& program);

}  // namespace atp::apps
