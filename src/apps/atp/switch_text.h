// SPDX-License-Identifier: Apache-2.0
// What `atp switch` prints for people.
#pragma once

#include <string>

#include "apps/atp/kernel_part.h"
#include "apps/atp/metrics_part.h"
#include "switchd/node.h"

namespace atp::apps {

// What runs beside the node; nullptr: it does not.
struct SwitchParts {
    const KernelPartConfig& kernel;
    const MarksPart* marks = nullptr;
    const MetricsPart* serving = nullptr;
    std::string additions{};  // lines
};

[[nodiscard]] std::string start_text(const switchd::SwitchNode& node, const SwitchParts& parts);
[[nodiscard]] std::string stop_text(const MarksPart* marks);

}  // namespace atp::apps
