// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of this folder: run a scenario, and describe what failed.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "sim/simulation.h"
#include "workload/models.h"

namespace atp::sim {

inline std::string failures_of(const Report& report) {
    std::string text;
    for (const std::string& failure : report.failures) text += failure + "\n";
    return text;
}

// Runs the scenario. Every operation must finish with the exact sum, without audit failures and without leaks.
inline Report run_verified(const Scenario& scenario) {
    const auto problem = problem_of(scenario);
    EXPECT_FALSE(problem.has_value()) << problem.value_or("");
    Report report = run(scenario);
    EXPECT_TRUE(report.passed()) << failures_of(report);
    return report;
}

inline TopologySpec topology(std::string_view text) {
    const auto spec = parse_topology(text);
    EXPECT_TRUE(spec.has_value()) << text;
    return spec.value_or(TopologySpec{});
}

inline WorkerCounters workers_of(const Report& report) {
    WorkerCounters sum{};
    for (const JobReport& job : report.jobs) add_counters(worker_fields, job.worker, sum);
    return sum;
}

inline ServerCounters servers_of(const Report& report) {
    ServerCounters sum{};
    for (const JobReport& job : report.jobs) add_counters(server_fields, job.server, sum);
    return sum;
}

inline std::uint64_t switch_events(const Report& report, unsigned event) {
    std::uint64_t count = 0;
    for (const SwitchReport& at : report.switches) count += at.counters.events[event];
    return count;
}

inline double milliseconds_of(const JobReport& job) { return to_milliseconds(job.time()); }

// Time of the longest job.
inline double finished_ms(const Report& report) {
    double last = 0;
    for (const JobReport& job : report.jobs) last = std::max(last, to_milliseconds(job.time()));
    return last;
}

}  // namespace atp::sim
