// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/command.h"

namespace atp::apps {

// `atp switch`: runs a switch on this host. register_lab_switch() is for `atp-lab` and adds the flags of experiments.
[[nodiscard]] std::function<int()> register_switch(CLI::App& program);
[[nodiscard]] std::function<int()> register_lab_switch(CLI::App& program);

}  // namespace atp::apps
