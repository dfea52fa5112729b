// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/command.h"

namespace atp::apps {

// `atp bench`: measures all-reduce on this host or on many, beside Gloo if requested. register_lab_bench() is for
// `atp-lab` and adds the flags of experiments.
[[nodiscard]] std::function<int()> register_bench(CLI::App& program);
[[nodiscard]] std::function<int()> register_lab_bench(CLI::App& program);

}  // namespace atp::apps
