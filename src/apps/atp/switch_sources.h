// SPDX-License-Identifier: Apache-2.0
// The switches that a command asks, by their addresses.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "metrics/exporter.h"

namespace atp::apps {

// `timeout`: longest wait for an answer. Failure: a name does not resolve, or there is no socket.
[[nodiscard]] Result<std::vector<metrics::SwitchSource>> sources_of(const std::vector<std::string>& switches,
                                                                    Duration timeout);

}  // namespace atp::apps
