// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/command.h"

namespace atp::apps {

// `atp bench`: how fast all-reduce is, on this machine or on many, beside Gloo if asked.
// In `atp`, and with the flags of experiments in `atp-lab`.
[[nodiscard]] std::function<int()> register_bench(CLI::App& program);
[[nodiscard]] std::function<int()> register_lab_bench(CLI::App& program);

}  // namespace atp::apps
