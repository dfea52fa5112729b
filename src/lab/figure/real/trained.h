// SPDX-License-Identifier: Apache-2.0
// Training jobs on real links. Their ranks sleep while they would compute, for as many times longer than in the papers
// as the links are slower, so that computation and communication keep their ratio.
#pragma once

#include <string_view>

#include "figure/chart.h"
#include "figure/trial.h"

namespace atp::figure {

struct Trained {
    std::string_view model;
    double scale = 1;  // divisor of parameters and times, for iterations of about a second
    unsigned batch = 32;
    unsigned iterations = 3;
};
[[nodiscard]] Trial trained_trial(std::string_view topology, std::int64_t rate_bits_per_s, const Trained& trained);

// The servers run on a host of its own, whose link has 0.6 of the rate for each of them: the papers' servers handle 60
// Gbit/s on links of 100. The hosts of a simulation are all as slow.
void move_servers(Trial& trial, unsigned servers = 1);

// Marks packets that would find so much in a queue in front of the servers' link. Call after move_servers().
void mark_at_servers(Trial& trial, std::uint64_t bytes);

// Mbit/s that the first host received over seconds, from the first to the last sum. Control packets count as nothing.
[[nodiscard]] Line received_by_first_host(std::string name, const Outcome& outcome, std::string_view system);

}  // namespace atp::figure
