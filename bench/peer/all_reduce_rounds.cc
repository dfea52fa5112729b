// SPDX-License-Identifier: Apache-2.0
#include "all_reduce_rounds.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace atp::bench {
namespace {

constexpr std::size_t pattern_length = 1021;

float element(std::size_t index, int round) {
    return static_cast<float>((index + static_cast<std::size_t>(round)) % pattern_length);
}

}  // namespace

void fill(std::span<float> elements, int rank, int round, std::size_t first) {
    const auto own = static_cast<float>(rank);
    for (std::size_t at = 0; at < elements.size(); ++at) elements[at] = element(first + at, round) + own;
}

void verify(std::span<const float> tensor, int world, int round) {
    const auto count = static_cast<float>(world);
    const float ranks = count * (count - 1) / 2;
    for (std::size_t index = 0; index < tensor.size(); ++index) {
        const float expected = count * element(index, round) + ranks;
        if (tensor[index] == expected) continue;
        throw std::runtime_error("wrong sum in round " + std::to_string(round) + ": element " + std::to_string(index) +
                                 " is " + std::to_string(tensor[index]) + ", not " + std::to_string(expected));
    }
}

void print(const Rounds& rounds, const std::string& how, const Measured& measured) {
    const std::vector<double>& seconds = measured.seconds;
    std::vector<double> sorted = seconds;
    std::ranges::sort(sorted);
    const double median = sorted[sorted.size() / 2];
    const double goodput_bps = static_cast<double>(rounds.bytes) * 8 / median;
    if (!rounds.json) {
        std::printf(
            "%s: %zu rounds of %llu bytes: median %.6f s per round (min %.6f, max %.6f), %.1f Mbit/s per rank\n",
            how.c_str(), sorted.size(), static_cast<unsigned long long>(rounds.bytes), median, sorted.front(),
            sorted.back(), goodput_bps / 1e6);
        return;
    }
    const nlohmann::ordered_json result{{"algorithm", how},
                                        {"bytes", rounds.bytes},
                                        {"rounds", seconds.size()},
                                        {"seconds", seconds},
                                        {"ranks_cpu_seconds", measured.cpu_seconds},
                                        {"median_seconds", median},
                                        {"min_seconds", sorted.front()},
                                        {"max_seconds", sorted.back()},
                                        {"goodput_bps", goodput_bps},
                                        {"latency_us", median * 1e6}};
    std::printf("%s\n", result.dump().c_str());
}

}  // namespace atp::bench
