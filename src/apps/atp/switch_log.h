// SPDX-License-Identifier: Apache-2.0
// What `atp switch` writes to its log at its start and at its end.
#pragma once

#include <string>
#include <vector>

#include "observe/log.h"
#include "switchd/node.h"

namespace atp::apps {

// Their number, or that there are none.
[[nodiscard]] std::string tenants_text(const switchd::SwitchNodeConfig& config);
// The settings in effect, the interfaces of the kernel switch, and what the kernel refused to the sockets.
void log_start(observe::Log& log, const switchd::SwitchNode& node, const observe::LogConfig& log_config,
               const std::string& trace);
// What made the switch stop by itself, and totals since its start.
void log_stop(observe::Log& log, const switchd::SwitchNode& node, const std::vector<Error>& failures);
// `failures`: of interfaces that keep the program.
void log_kernel_stop(observe::Log& log, const std::vector<std::string>& interfaces, const std::vector<Error>& failures);

}  // namespace atp::apps
