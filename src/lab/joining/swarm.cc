// SPDX-License-Identifier: Apache-2.0
#include "joining/swarm.h"

#include <mutex>

#include "parallel/for_each.h"

namespace atp::joining {

JoinSwarmSummary run_join_swarm(const JoinSwarmOptions& options) {
    JoinSwarmSummary summary;
    std::mutex mutex;
    for_each_in_parallel(options.runs, options.threads, options.stop, [&](std::uint64_t run) {
        const std::uint64_t seed = options.first_seed + run;
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
    });
    return summary;
}

}  // namespace atp::joining
