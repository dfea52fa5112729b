// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/command.h"

namespace atp::apps {

// `atp-lab switch`: the switch of `atp`, with emulated links and with SwitchML.
[[nodiscard]] std::function<int()> register_lab_switch(CLI::App& program);

}  // namespace atp::apps
