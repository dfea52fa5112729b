// SPDX-License-Identifier: Apache-2.0
// Formats a plan as tables for users, or as one JSON object.
#pragma once

#include <string>

#include "plan/plan.h"

namespace atp::plan {

[[nodiscard]] std::string to_text(const Cluster& cluster, const Plan& plan);
[[nodiscard]] std::string to_json(const Cluster& cluster, const Plan& plan);

}  // namespace atp::plan
