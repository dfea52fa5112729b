// SPDX-License-Identifier: Apache-2.0
// Flags of `atp-lab simulate` that define a scenario.
#pragma once

#include "sim/scenario.h"

namespace atp::apps {

class Command;

// Adds a flag for each row of sim/scenario_table.h. Each flag writes its field of `scenario`, which must outlive the
// parsing.
void add_scenario_flags(Command& command, sim::Scenario& scenario);

}  // namespace atp::apps
