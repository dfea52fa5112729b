// SPDX-License-Identifier: Apache-2.0
// The switches that a command asks, by their addresses.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "metrics/exporter.h"

namespace atp::apps {

struct Sources {
    std::vector<metrics::SwitchSource> sources{};
    std::function<void()> close{};  // ends all questions, also those that wait, as if nobody had answered
};

// `timeout`: longest wait for an answer. Failure: a switch is named twice, a name does not resolve, or there is no
// socket.
[[nodiscard]] Result<Sources> sources_of(const std::vector<std::string>& switches, Duration timeout);

}  // namespace atp::apps
