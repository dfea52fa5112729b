// SPDX-License-Identifier: Apache-2.0
// How an all-reduce of a peer is measured, whichever library makes it: every sum is verified, and the slowest rank's
// time counts.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace atp::bench {

struct Rounds {
    std::uint64_t bytes = 25'000'000;  // of the tensor of float32
    int rounds = 5;                    // measured operations; the median counts
    int warmup = 1;                    // operations before those
    bool json = false;
};

// Small whole numbers, other ones each round: their sums are exact as float32 in whichever order they are added.
void fill(std::vector<float>& tensor, int rank, int round);
// Throws where one is not the sum of all ranks'.
void verify(const std::vector<float>& tensor, int world, int round);

// For people or for programs; `how` names what made the sums.
void print(const Rounds& rounds, const std::string& how, const std::vector<double>& seconds);

// Group: barrier(); all_reduce(), of the tensor; largest(double), of what the ranks bring.
template <class Group>
std::vector<double> measure(Group& group, std::vector<float>& tensor, const Rounds& rounds, int rank, int world) {
    std::vector<double> seconds;
    for (int round = 0; round < rounds.warmup + rounds.rounds; ++round) {
        fill(tensor, rank, round);
        group.barrier();
        const auto begin = std::chrono::steady_clock::now();
        group.all_reduce();
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
        verify(tensor, world, round);
        // The slowest rank's time: only then has everybody the sum.
        const double slowest = group.largest(elapsed.count());
        if (round >= rounds.warmup) seconds.push_back(slowest);
    }
    group.barrier();  // who leaves early closes connections that others may still read from
    return seconds;
}

}  // namespace atp::bench
