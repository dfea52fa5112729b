// SPDX-License-Identifier: Apache-2.0
// Small clusters for the tests of this folder.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plan/cluster.h"
#include "protocol/switch.h"

namespace atp::plan {

inline constexpr std::int64_t gbit = 1'000'000'000;

inline Switch make_switch(std::string name, std::int64_t host_rate = 100 * gbit) {
    Switch one;
    one.name = std::move(name);
    one.host_bits_per_s = host_rate;
    return one;
}

inline Switch make_leaf(std::string name, std::size_t root, std::int64_t rate = 100 * gbit) {
    Switch one = make_switch(std::move(name), rate);
    one.parent = root;
    one.uplink_bits_per_s = rate;
    return one;
}

// One bucket of gradients that is ready at once, and `compute` time.
inline workload::Workload one_bucket(std::uint64_t bytes, Duration compute = {}) {
    return {.buckets = {{.elements = bytes / sizeof(float)}}, .forward = {{.compute = compute, .last = 1}}};
}

inline Job make_job(std::string name, std::vector<unsigned> workers, workload::Workload workload) {
    Job job;
    job.name = std::move(name);
    job.workers = std::move(workers);
    job.workload = std::move(workload);
    return job;
}

inline Cluster star(std::vector<Job> jobs) {
    return {.switches = {make_switch("s")}, .root = 0, .jobs = std::move(jobs)};
}

// A root, and leaves l1, l2, ...
inline Cluster racks(unsigned count, std::vector<Job> jobs) {
    Cluster cluster{.switches = {make_switch("root")}, .root = 0, .jobs = std::move(jobs)};
    for (unsigned i = 1; i <= count; ++i) cluster.switches.push_back(make_leaf("l" + std::to_string(i), 0));
    return cluster;
}

}  // namespace atp::plan
