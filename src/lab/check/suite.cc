// SPDX-License-Identifier: Apache-2.0
#include "check/suite.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

namespace atp::check {

std::vector<Report> run_suite(const std::vector<Task>& tasks, const SuiteOptions& options) {
    std::vector<Report> reports(tasks.size());
    std::atomic<std::size_t> next = 0;
    std::mutex telling;
    const auto work = [&] {
        for (std::size_t at = next++; at < tasks.size(); at = next++) {
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
        }
    };
    std::vector<std::jthread> threads;
    const std::size_t count = std::min<std::size_t>(options.threads, tasks.size());
    for (std::size_t i = 1; i < count; ++i) threads.emplace_back(work);
    work();
    threads.clear();  // joins the threads
    return reports;
}

}  // namespace atp::check
