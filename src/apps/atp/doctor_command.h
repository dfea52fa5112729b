// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/command.h"

namespace atp::apps {

// `atp doctor`: what usually goes wrong, and how to mend it.
[[nodiscard]] std::function<int()> register_doctor(CLI::App& program);

}  // namespace atp::apps
