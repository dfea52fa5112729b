// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/command.h"

namespace atp::apps {

// `atp-lab models`: lists the neural networks that `atp-lab simulate --model` accepts.
[[nodiscard]] std::function<int()> register_models(CLI::App& program);

}  // namespace atp::apps
