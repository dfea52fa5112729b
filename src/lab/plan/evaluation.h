// SPDX-License-Identifier: Apache-2.0
// Duration of an iteration of each job with a given system, and the resources that limit it.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <vector>

#include "plan/max_min.h"
#include "plan/network.h"
#include "plan/traffic.h"

namespace atp::plan {

// Number of aggregators, by switch.
using Memories = std::vector<double>;
inline constexpr double unbounded = std::numeric_limits<double>::infinity();

// Resources are numbered: first the links of the network, then the window of each job.
struct JobOutcome {
    Duration iteration{};
    std::vector<Duration> limited;  // time per iteration in which the resource was the limit, by resource
};

// State of the network while a given set of jobs sends.
struct Rush {
    std::vector<double> rates;                   // by job: bytes of gradients per second
    std::vector<std::vector<double>> requested;  // required aggregators, by switch and job
    std::vector<double> added;                   // by switch: share of packets that get an aggregator, 0 to 1
};

// Rates of jobs that share a network and a system. A job that ATP cannot serve uses a parameter server.
//
// Ownership: borrows the network, which must outlive this object.
class Rates {
  public:
    Rates(const Network& network, const System& system, Memories memories);

    [[nodiscard]] const std::vector<Share>& of(const std::vector<bool>& active);
    [[nodiscard]] Rush rush(const std::vector<bool>& active);
    [[nodiscard]] Traffic traffic(std::size_t job) const;  // as if every packet got an aggregator
    [[nodiscard]] std::size_t resources() const { return network_.links().size() + streams_.size(); }

  private:
    [[nodiscard]] std::vector<Resource> resources_at(std::span<const double> rates) const;
    [[nodiscard]] std::vector<double> added_at(std::span<const double> rates) const;
    [[nodiscard]] double requested(std::size_t at, std::size_t job, double rate) const;

    const Network& network_;
    std::vector<System> systems_;  // by job
    Memories memories_;
    std::vector<Stream> streams_;  // by job
    std::vector<double> weights_;  // by job
    std::map<std::vector<bool>, std::vector<Share>> known_;
};

[[nodiscard]] std::vector<JobOutcome> evaluate(const Network& network, const System& system, const Memories& memories);

// The aggregators that the switches have; 0 for a switch that does not aggregate.
[[nodiscard]] Memories memories_of(const Cluster& cluster, const std::vector<bool>& aggregates);

}  // namespace atp::plan
