// SPDX-License-Identifier: Apache-2.0
// What `atp doctor` says about the paths between the hosts of a job.
#pragma once

#include <vector>

#include "doctor/finding.h"
#include "doctor/host_pairs.h"

namespace atp::doctor {

[[nodiscard]] std::vector<Finding> check_pairs(const PairFacts& facts);

}  // namespace atp::doctor
