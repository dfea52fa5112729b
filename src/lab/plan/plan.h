// SPDX-License-Identifier: Apache-2.0
// A plan: which switches to purchase, the gain, and the bottleneck of each job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/cluster.h"
#include "plan/traffic.h"

namespace atp::plan {

// A system that could sum the gradients of all jobs.
struct Option {
    std::string key;  // identifier in JSON
    std::string title;
    System system;
};

struct Bottleneck {
    enum class Kind : std::uint8_t { computation, worker_link, uplink, server_link, card, window, memory };
    Kind kind = Kind::computation;
    std::size_t at = 0;  // index of the switch
};
[[nodiscard]] std::string_view to_string(Bottleneck::Kind kind);

struct JobPlan {
    std::vector<std::optional<Duration>> iterations;  // by option; empty: these switches cannot serve the job
    Duration computes{};                              // computation per iteration
    double gain = 1;                                  // shortest iteration without ATP divided by the shortest with ATP
    Bottleneck bottleneck;                            // if every switch that can aggregate does so
    double waits = 0;                                 // share of an iteration without computation, 0 to 1
    double bytes_per_s = 0;                           // gradients, while every job sends
};

struct SwitchPlan {
    double aggregators = 0;
    std::vector<double> requested;  // required aggregators by job, while every job sends
    double requested_at_most = 0;   // the most: while every job sends, or while one job sends alone, faster
    double added = 1;               // share of packets that get an aggregator while every job sends, 0 to 1
};

// The next switches to purchase: one switch, or several that gain only together.
struct Purchase {
    std::vector<std::size_t> switches;
    std::vector<Duration> iterations;  // by job, with this and all previous purchases
};

// Iterations if every switch has only this share of its required aggregators.
struct Shortage {
    double share = 1;
    std::vector<Duration> iterations;  // by job
};

struct Plan {
    std::vector<Option> options;  // options without ATP first; the option with every possible switch last
    std::vector<JobPlan> jobs;
    std::vector<SwitchPlan> switches;
    std::vector<Duration> without;  // iteration of each job without ATP: with one parameter server for each job
    std::vector<Purchase> purchases;
    std::vector<Shortage> shortages;
};

[[nodiscard]] Plan make_plan(const Cluster& cluster);

}  // namespace atp::plan
