// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/command.h"

namespace atp::apps {

// `atp-lab figure`: draws the papers' figures again and compares them with the claims.
[[nodiscard]] std::function<int()> register_figure(CLI::App& program);

}  // namespace atp::apps
