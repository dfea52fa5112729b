// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/command.h"

namespace atp::apps {

// `atp-lab bench`: the benchmark of `atp`, also with SwitchML, and with a window that congestion does not change.
[[nodiscard]] std::function<int()> register_lab_bench(CLI::App& program);

}  // namespace atp::apps
