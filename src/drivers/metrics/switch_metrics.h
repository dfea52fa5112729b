// SPDX-License-Identifier: Apache-2.0
// The report of a switch as metrics. Their names follow from the keys of the report.
#pragma once

#include <optional>
#include <string>

#include "client/switch_report.h"
#include "metrics/exposition.h"

namespace atp::metrics {

// `name`: by which the operator knows the switch; the label `switch` of each sample. Without a report, only that it is
// not up.
void add_switch(const std::string& name, const std::optional<client::SwitchReport>& report, Exposition& to);

}  // namespace atp::metrics
