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

// Rates separated by commas, each of all interfaces or, as in `eth1=500Mbit`, of one. Nullopt if a rate is none.
[[nodiscard]] std::optional<std::vector<NamedRate>> parse_link_rates(std::string_view text);
inline constexpr std::string_view link_rate_forms =
    "rates such as 10Gbit or eth1=500Mbit, from 1Mbit to 10000Gbit, separated by commas";

// Why the flags exclude each other, as a text for the operator; nullopt if they do not. `node`: the configuration from
// these flags.
[[nodiscard]] std::optional<std::string> find_misuse(const KernelPartConfig& kernel,
                                                     const switchd::SwitchNodeConfig& node, const Given& given);

}  // namespace atp::apps
