// SPDX-License-Identifier: Apache-2.0
// What is to be planned: switches in a tree of one or two levels, and the jobs that run under them.
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
    std::optional<std::size_t> parent;  // nothing: the root
    std::int64_t host_bits_per_s = 0;   // of the link of each host below it, in each direction
    std::int64_t uplink_bits_per_s = 0;
    Duration delay = std::chrono::microseconds(1);  // of one of its links
    std::uint64_t queue_bytes = 200'000;            // at which it marks packets
    std::uint64_t memory_bytes = 64'000'000;
    std::uint32_t lanes = 352;         // of an aggregator
    bool aggregates = true;            // it does, or would if it were bought
    std::int64_t card_bits_per_s = 0;  // of a host that `atp switch` runs on; 0: packets enter and leave by ports

    [[nodiscard]] std::uint64_t aggregators() const;
};

enum class ServerPlace : std::uint8_t {
    on_switch,  // on the box of the last switch
    dedicated,  // on a host of its own under the last switch
    colocated,  // on the hosts of workers, the channels' in turn
};

struct Job {
    std::string name;
    std::string model;  // empty where it was described by numbers
    workload::Workload workload;
    double samples = 0;             // of all workers in an iteration
    std::vector<unsigned> workers;  // by switch
    ServerPlace server = ServerPlace::on_switch;
    unsigned channels = 1;
    bool shares_hosts = false;  // with all others that do

    [[nodiscard]] unsigned worker_count() const;
};

struct Cluster {
    std::vector<Switch> switches;
    std::size_t root = 0;
    std::vector<Job> jobs;

    // The last switch on the way from the job's workers to its server.
    [[nodiscard]] std::size_t last_switch(const Job& job) const;
    // Whether it stands on the way of the job's gradients.
    [[nodiscard]] bool serves(std::size_t at, const Job& job) const;
};

}  // namespace atp::plan
