// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace atp::xdp {

// Sends a command of <linux/ethtool.h> to the driver of an interface. `command` begins with its number, is argument and
// result, and has the length that the number requires. False if there is no such interface, or its driver refuses.
[[nodiscard]] bool ask_driver(const std::string& interface, void* command);

}  // namespace atp::xdp
