// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/command.h"

namespace atp::apps {

// `atp switch`: this machine aggregates.
// In `atp`, and with the flags of experiments in `atp-lab`.
[[nodiscard]] std::function<int()> register_switch(CLI::App& program);
[[nodiscard]] std::function<int()> register_lab_switch(CLI::App& program);

}  // namespace atp::apps
