// SPDX-License-Identifier: Apache-2.0
// Measures the all-reduce of another library. Every sum is verified, and the time of a round is that of the slowest
// rank.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "apps/common/cpu_time.h"

namespace atp::bench {

struct Rounds {
    std::uint64_t bytes = 25'000'000;  // of the float32 tensor
    int rounds = 5;                    // measured operations; the result is the median of their times
    int warmup = 1;                    // operations before the measured ones
    bool json = false;
};

// Writes small whole numbers that differ between rounds. Their float32 sums are exact in any order. `first`: index of
// the first element in the tensor.
void fill(std::span<float> elements, int rank, int round, std::size_t first = 0);
// Throws if an element is not the sum over all ranks.
void verify(std::span<const float> tensor, int world, int round);

struct Measured {
    std::vector<double> seconds;  // per round, of the slowest rank
    double cpu_seconds = 0;       // of all ranks in these rounds; to fill and verify tensors does not count
};

// Prints a line of text or a JSON object; `how` names the algorithm.
void print(const Rounds& rounds, const std::string& how, const Measured& measured);

// Group has barrier(), all_reduce() of the tensor, and largest(double) and total(double) over the ranks.
template <class Group>
Measured measure(Group& group, std::vector<float>& tensor, const Rounds& rounds, int rank, int world) {
    Measured measured;
    apps::CpuTime cpu;
    for (int round = 0; round < rounds.warmup + rounds.rounds; ++round) {
        if (round == rounds.warmup) cpu.start();
        cpu.aside([&] { fill(tensor, rank, round); });
        group.barrier();
        const auto begin = std::chrono::steady_clock::now();
        group.all_reduce();
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
        cpu.aside([&] { verify(tensor, world, round); });
        // The slowest rank's time, because only then all ranks have the sum.
        const double slowest = group.largest(elapsed.count());
        if (round >= rounds.warmup) measured.seconds.push_back(slowest);
    }
    cpu.stop();
    measured.cpu_seconds = group.total(cpu.seconds());
    group.barrier();  // a rank that leaves early closes connections from which other ranks may still read
    return measured;
}

}  // namespace atp::bench
