// SPDX-License-Identifier: Apache-2.0
// What `atp top` shows: switches and jobs, by what they did since the last look.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "metrics/exporter.h"

namespace atp::apps {

struct Look {
    std::vector<std::string> names;  // of the switches
    metrics::Reports reports;        // in the same order
};

// Lines of at most `width` columns, at most `height` of them. `before`: the look `seconds` earlier; empty: no rates
// yet.
[[nodiscard]] std::vector<std::string> top_lines(const Look& now, const Look& before, double seconds, std::size_t width,
                                                 std::size_t height);

}  // namespace atp::apps
