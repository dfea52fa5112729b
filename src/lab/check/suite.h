// SPDX-License-Identifier: Apache-2.0
// Parallel explorations, one per thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "check/configuration.h"
#include "check/report.h"

namespace atp::check {

struct Task {
    const Configuration* configuration = nullptr;
    std::function<Report(const Configuration&, const Limits&)> explore;
};

struct SuiteOptions {
    unsigned threads = 1;
    std::uint64_t max_states = 0;  // per exploration
    // `progress` reports a running exploration, `ended` a finished one. Any thread calls them, but only one at a time.
    std::function<void(std::string_view configuration, const Progress&)> progress;
    std::function<void(const Report&)> ended;
};

// The reports have the order of the tasks.
[[nodiscard]] std::vector<Report> run_suite(const std::vector<Task>& tasks, const SuiteOptions& options);

}  // namespace atp::check
