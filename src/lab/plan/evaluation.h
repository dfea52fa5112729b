// SPDX-License-Identifier: Apache-2.0
// How long an iteration of each job takes with a system, and what it waits for.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <vector>

#include "plan/max_min.h"
#include "plan/network.h"
#include "plan/traffic.h"

namespace atp::plan {

// Aggregators of each switch, for the packets of its jobs.
using Memories = std::vector<double>;
inline constexpr double unbounded = std::numeric_limits<double>::infinity();

// A resource: a link of the network, or, behind all of them, a job's window.
struct JobOutcome {
    Duration iteration{};
    std::vector<Duration> limited;  // by resource, of an iteration
};

// While some jobs send.
struct Rush {
    std::vector<double> rates;                // by job: bytes of gradients a second
    std::vector<std::vector<double>> wanted;  // aggregators, by switch and job
    std::vector<double> added;                // by switch: the share of packets that find one
};

// Rates of jobs that share a network, with one system for all; those that ATP cannot serve have a parameter server.
// Borrows the network.
class Rates {
  public:
    Rates(const Network& network, const System& system, Memories memories);

    [[nodiscard]] const std::vector<Share>& of(const std::vector<bool>& active);
    [[nodiscard]] Rush rush(const std::vector<bool>& active);
    [[nodiscard]] Traffic traffic(std::size_t job) const;  // with room for everything
    [[nodiscard]] std::size_t resources() const { return network_.links().size() + streams_.size(); }

  private:
    [[nodiscard]] std::vector<Resource> resources_at(std::span<const double> rates) const;
    [[nodiscard]] std::vector<double> added_at(std::span<const double> rates) const;
    [[nodiscard]] double wanted(std::size_t at, std::size_t job, double rate) const;

    const Network& network_;
    std::vector<System> systems_;  // by job
    Memories memories_;
    std::vector<Stream> streams_;  // likewise
    std::vector<double> weights_;  // likewise
    std::map<std::vector<bool>, std::vector<Share>> known_;
};

[[nodiscard]] std::vector<JobOutcome> evaluate(const Network& network, const System& system, const Memories& memories);

// What the switches have.
[[nodiscard]] Memories memories_of(const Cluster& cluster, const std::vector<bool>& aggregates);

}  // namespace atp::plan
