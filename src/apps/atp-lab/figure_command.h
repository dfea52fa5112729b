// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/command.h"

namespace atp::apps {

// `atp-lab figure`: the papers' figures, drawn again and held against what is claimed.
[[nodiscard]] std::function<int()> register_figure(CLI::App& program);

}  // namespace atp::apps
