// SPDX-License-Identifier: Apache-2.0
#include "check/suite.h"

#include <mutex>

#include "parallel/for_each.h"

namespace atp::check {

std::vector<Report> run_suite(const std::vector<Task>& tasks, const SuiteOptions& options) {
    std::vector<Report> reports(tasks.size());
    std::mutex telling;
    for_each_in_parallel(tasks.size(), options.threads, nullptr, [&](std::uint64_t at) {
        const Configuration& configuration = *tasks[at].configuration;
        Limits limits;
        limits.max_states = options.max_states;
        if (options.progress) {
            limits.progress = [&](const Progress& progress) {
                const std::lock_guard lock(telling);
                options.progress(configuration.name, progress);
            };
        }
        reports[at] = tasks[at].explore(configuration, limits);
        const std::lock_guard lock(telling);
        if (options.ended) options.ended(reports[at]);
    });
    return reports;
}

}  // namespace atp::check
