// SPDX-License-Identifier: Apache-2.0
#include "sim/swarm.h"

#include <mutex>

#include "parallel/for_each.h"
#include "random/random.h"
#include "sim/scenario_table.h"
#include "sim/simulation.h"

namespace atp::sim {
namespace {

constexpr std::uint64_t swarm_stream = 0x5a3b;

}  // namespace

Scenario draw_scenario(std::uint64_t seed) {
    // Some drawn scenarios cannot run, for example with more units than a bitmap has bits. The function then draws
    // another scenario from the same seed.
    for (std::uint64_t attempt = 0;; ++attempt) {
        Random random(seed, swarm_stream + attempt);
        Scenario s;
        s.seed = seed;
        for (const ScenarioRow& row : scenario_table()) {
            if (row.draw != nullptr) row.draw(random, s);
        }
        if (!problem_of(s)) return s;
    }
}

namespace {

void add_to_summary(const Report& report, SwarmSummary& summary) {
    ++summary.runs;
    if (!report.passed()) ++summary.failures;
    summary.packet_hops += report.packet_hops;
    for (const JobReport& job : report.jobs) {
        summary.fragments += job.fragments();
        summary.incarnations += job.incarnations;
        summary.resends += job.resends();
        if (!job.finished || job.finished->time_since_epoch() <= summary.slowest) continue;
        summary.slowest = job.finished->time_since_epoch();
        summary.slowest_seed = report.seed;
    }
    for (const LinkReport& link : report.links) summary.lost += link.counters.lost + link.counters.dropped;
}

}  // namespace

SwarmSummary run_swarm(const SwarmOptions& options) {
    SwarmSummary summary;
    std::mutex mutex;
    for_each_in_parallel(options.runs, options.threads, options.stop, [&](std::uint64_t mine) {
        const Report report =
            run(draw_scenario(options.first_seed + mine), {.trace = nullptr, .stop = options.stop, .progress = {}});
        const std::lock_guard lock(mutex);
        if (report.interrupted) return;
        add_to_summary(report, summary);
        if (!report.passed() && options.failed) options.failed(report);
        if (options.progress) options.progress(summary.runs);
    });
    return summary;
}

}  // namespace atp::sim
