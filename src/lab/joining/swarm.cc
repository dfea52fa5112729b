// SPDX-License-Identifier: Apache-2.0
#include "joining/swarm.h"

#include <mutex>
#include <thread>
#include <vector>

namespace atp::joining {

JoinSwarmSummary run_join_swarm(const JoinSwarmOptions& options) {
    JoinSwarmSummary summary;
    std::mutex mutex;
    std::atomic<std::uint64_t> next = 0;
    const auto work = [&] {
        while (options.stop == nullptr || !options.stop->load(std::memory_order_relaxed)) {
            const std::uint64_t mine = next.fetch_add(1, std::memory_order_relaxed);
            if (mine >= options.runs) return;
            const std::uint64_t seed = options.first_seed + mine;
            const JoinReport report = run_joining(options.calm ? draw_calm_scenario(seed) : draw_join_scenario(seed));
            const std::lock_guard lock(mutex);
            ++summary.runs;
            summary.packets += report.packets;
            summary.operations += report.operations;
            summary.incarnations += report.incarnations;
            summary.errors += report.errors;
            if (!report.failures.empty()) {
                ++summary.failures;
                if (options.failed) options.failed(report);
            }
            if (options.progress) options.progress(summary.runs);
        }
    };
    std::vector<std::jthread> threads;
    for (unsigned i = 1; i < options.threads; ++i) threads.emplace_back(work);
    work();
    threads.clear();  // joins the threads
    return summary;
}

}  // namespace atp::joining
