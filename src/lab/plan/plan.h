// SPDX-License-Identifier: Apache-2.0
// What to buy, what it would gain, and what holds each job back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/cluster.h"
#include "plan/traffic.h"

namespace atp::plan {

// What could sum the gradients of all jobs.
struct Option {
    std::string key;  // for programs
    std::string title;
    System system;
};

struct Bottleneck {
    enum class Kind : std::uint8_t { computation, worker_link, uplink, server_link, card, window, memory };
    Kind kind = Kind::computation;
    std::size_t at = 0;  // the switch meant
};
[[nodiscard]] std::string_view to_string(Bottleneck::Kind kind);

struct JobPlan {
    std::vector<std::optional<Duration>> iterations;  // by option; nothing: these switches cannot serve the job
    Duration computes{};                              // of an iteration
    double gain = 1;                                  // the best of ATP's options against the best without it
    Bottleneck bottleneck;                            // with every switch that could aggregate
    double waits = 0;                                 // the share of an iteration in which the job does not compute
    double bytes_per_s = 0;                           // of gradients, while every job sends
};

struct SwitchPlan {
    double aggregators = 0;
    std::vector<double> wanted;  // by job, while every job sends
    double wanted_at_most = 0;   // of them all, or of one that sends alone
    double added = 1;            // the share of packets that find an aggregator, while every job sends
};

// The next switch to buy, or some that gain only together, and iterations of all jobs with these and those before.
struct Purchase {
    std::vector<std::size_t> switches;
    std::vector<Duration> iterations;
};

// Every switch has that share of the aggregators that it is wanted to have.
struct Shortage {
    double share = 1;
    std::vector<Duration> iterations;  // by job
};

struct Plan {
    std::vector<Option> options;  // those without ATP first; all that could aggregate last
    std::vector<JobPlan> jobs;
    std::vector<SwitchPlan> switches;
    std::vector<Duration> without;  // iterations of jobs, with one parameter server each
    std::vector<Purchase> purchases;
    std::vector<Shortage> shortages;
};

[[nodiscard]] Plan make_plan(const Cluster& cluster);

}  // namespace atp::plan
