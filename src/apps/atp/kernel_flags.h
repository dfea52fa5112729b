// SPDX-License-Identifier: Apache-2.0
// Which flags of `atp switch` go with the part inside the kernel, and which do not.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/atp/kernel_part.h"
#include "switchd/config.h"

namespace atp::apps {

// Names with a comma between two, blanks around them or not. Nothing where one is empty.
[[nodiscard]] std::optional<std::vector<std::string>> parse_interfaces(std::string_view text);

// Whether a flag stands on the command line, whatever its value.
using Given = std::function<bool(const std::string& flag)>;

// Why the flags do not go together, in words for who gave them; nothing where they do. `node` is as those flags make
// it.
[[nodiscard]] std::optional<std::string> find_misuse(const KernelPartConfig& kernel,
                                                     const switchd::SwitchNodeConfig& node, const Given& given);

}  // namespace atp::apps
