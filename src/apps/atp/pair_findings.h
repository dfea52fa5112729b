// SPDX-License-Identifier: Apache-2.0
// What `atp doctor` says about the paths between the hosts of a job.
#pragma once

#include <vector>

#include "comm/host_pairs.h"
#include "doctor/finding.h"

namespace atp::apps {

[[nodiscard]] std::vector<doctor::Finding> check_pairs(const comm::PairFacts& facts);

}  // namespace atp::apps
