// SPDX-License-Identifier: Apache-2.0
// Input of the planner: switches in a tree of one or two levels, and the jobs below them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "workload/training.h"

namespace atp::plan {

struct Switch {
    std::string name;
    std::optional<std::size_t> parent;  // index of the switch above; empty: this is the root
    std::int64_t host_bits_per_s = 0;   // link to each host below it, in each direction
    std::int64_t uplink_bits_per_s = 0;
    Duration delay = std::chrono::microseconds(1);  // of each of its links
    std::uint64_t queue_bytes = 200'000;            // threshold of congestion marks
    std::uint64_t memory_bytes = 64'000'000;
    std::uint32_t lanes = 352;  // per aggregator
    bool aggregates = true;     // can aggregate, now or after a purchase
    // Network card of the host that runs `atp switch`; 0: the switch has ports instead.
    std::int64_t card_bits_per_s = 0;

    [[nodiscard]] std::uint64_t aggregators() const;
};

enum class ServerPlacement : std::uint8_t {
    on_switch,  // on the host of the last switch
    dedicated,  // on a host of its own below the last switch
    colocated,  // on the hosts of workers: the channels get the hosts in turn
};

struct Job {
    std::string name;
    std::string model;  // empty: numbers of parameters and computation describe the job
    workload::Workload workload;
    double samples = 0;             // per iteration, of all workers
    std::vector<unsigned> workers;  // number of workers, by switch
    ServerPlacement server = ServerPlacement::on_switch;
    unsigned channels = 1;
    bool shares_hosts = false;  // worker i below a switch runs on one host with worker i of the other jobs that share

    [[nodiscard]] unsigned worker_count() const;
};

struct Cluster {
    std::vector<Switch> switches;
    std::size_t root = 0;
    std::vector<Job> jobs;

    // The last switch on the path from the job's workers to its server.
    [[nodiscard]] std::size_t last_switch(const Job& job) const;
    // Whether the switch is on the path of the job's gradients.
    [[nodiscard]] bool serves(std::size_t at, const Job& job) const;
};

}  // namespace atp::plan
