// SPDX-License-Identifier: Apache-2.0
// All checks of `atp doctor`, in their order.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/time.h"
#include "doctor/finding.h"
#include "doctor/path_probe.h"

namespace atp::doctor {

struct Request {
    std::vector<std::string> switches;           // host:port
    std::vector<std::string> peers;              // host:port, TCP
    Duration timeout = std::chrono::seconds(2);  // of each wait
};

// Calls `found` for each finding as soon as it is known. Takes a few seconds per switch.
void examine(const Request& request, const Progress& progress, const std::function<void(const Finding&)>& found);

}  // namespace atp::doctor
