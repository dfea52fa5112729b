// SPDX-License-Identifier: Apache-2.0
// Flags that say how slots find their aggregators. A job's ranks and the hosts of its servers need equal ones.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/common/flags.h"
#include "policy/aggregators.h"

namespace atp::apps {

// Returns --partition.
CLI::Option* add_assignment_flags(Flags& flags, policy::Assignment& assignment);
[[nodiscard]] std::vector<std::string> flags_of_assignment(const policy::Assignment& assignment);
// nullptr: the hash of the protocol.
[[nodiscard]] std::shared_ptr<const protocol::IndexRule> rule_of(const policy::Assignment& assignment);

}  // namespace atp::apps
