// SPDX-License-Identifier: Apache-2.0
// A configuration with its budgets of faults. Internal to this module.
#pragma once

#include <vector>

#include "check/configuration.h"

namespace atp::check {

struct ConfigurationEntry {
    Configuration configuration;
    Budget full;
    Budget quick;
    bool is_long = false;  // not for a test
};

void add_formation(std::vector<ConfigurationEntry>& all);
void add_host(std::vector<ConfigurationEntry>& all);
void add_lists(std::vector<ConfigurationEntry>& all);
void add_narrow_numbers(std::vector<ConfigurationEntry>& all);
void add_owners(std::vector<ConfigurationEntry>& all);
void add_pipelines(std::vector<ConfigurationEntry>& all);

}  // namespace atp::check
