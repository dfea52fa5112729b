// SPDX-License-Identifier: Apache-2.0
// Checks which flags of `atp switch` can be combined with the kernel switch.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/atp/kernel_part.h"
#include "apps/atp/switch_command.h"
#include "switchd/config.h"

namespace atp::apps {

// Names separated by commas, with or without blanks. Nullopt if a name is empty.
[[nodiscard]] std::optional<std::vector<std::string>> parse_interfaces(std::string_view text);

// Why the flags exclude each other, as a text for the operator; nullopt if they do not. `node`: the configuration from
// these flags.
[[nodiscard]] std::optional<std::string> find_misuse(const KernelPartConfig& kernel,
                                                     const switchd::SwitchNodeConfig& node, const Given& given);

}  // namespace atp::apps
