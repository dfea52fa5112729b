// SPDX-License-Identifier: Apache-2.0
// bench_gloo: one rank of an all-reduce by Gloo over TCP, the peer that ATP is measured against.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "gloo_group.h"

namespace atp::bench {
namespace {

constexpr int exit_failed = 1;
constexpr int exit_bad_usage = 2;
// The classes of Gloo's count bytes in an int.
constexpr std::uint64_t most_bytes = 2'000'000'000;

struct Options {
    Membership membership;
    Algorithm algorithm = Algorithm::ring;
    std::string algorithm_name = "ring";
    std::uint64_t bytes = 25'000'000;
    int rounds = 5;
    int warmup = 1;
    double timeout_seconds = 30;
    bool json = false;
};

void add_options(CLI::App& app, Options& options) {
    Membership& membership = options.membership;
    app.add_option("--rank", membership.rank, "this process among the others, from 0")
        ->required()
        ->check(CLI::Range(0, 1023));
    app.add_option("--world", membership.world, "how many processes there are")->required()->check(CLI::Range(1, 1024));
    app.add_option("--store", membership.store, "an empty folder that all ranks see, where they find each other")
        ->required()
        ->check(CLI::ExistingDirectory);
    auto* interface = app.add_option("--interface", membership.interface, "the interface to speak through");
    app.add_option("--address", membership.address, "the address to speak from")->excludes(interface);
    app.add_option("--algorithm", options.algorithm_name, "which of Gloo's algorithms")
        ->check(CLI::IsMember(algorithms()))
        ->capture_default_str();
    app.add_option("--bytes", options.bytes, "bytes of the tensor of float32; as in 25MB, 64KiB")
        ->transform(CLI::AsSizeValue(true))
        ->check(CLI::Range(std::uint64_t{sizeof(float)}, most_bytes))
        ->capture_default_str();
    app.add_option("--rounds", options.rounds, "measured operations; the median counts")
        ->check(CLI::Range(1, 100'000))
        ->capture_default_str();
    app.add_option("--warmup", options.warmup, "operations before those")
        ->check(CLI::Range(0, 100'000))
        ->capture_default_str();
    app.add_option("--timeout", options.timeout_seconds, "seconds that anything may wait for a peer")
        ->check(CLI::Range(0.1, 3600.0))
        ->capture_default_str();
    app.add_flag("--json", options.json, "rank 0 prints one object in place of a line");
}

// Small whole numbers, other ones each round: their sums are exact as float32 in whichever order they are added.
constexpr std::size_t pattern_length = 1021;

float element(std::size_t index, int round) {
    return static_cast<float>((index + static_cast<std::size_t>(round)) % pattern_length);
}

void fill(std::vector<float>& tensor, int rank, int round) {
    const auto own = static_cast<float>(rank);
    for (std::size_t index = 0; index < tensor.size(); ++index) tensor[index] = element(index, round) + own;
}

void verify(const std::vector<float>& tensor, int world, int round) {
    const auto count = static_cast<float>(world);
    const float ranks = count * (count - 1) / 2;
    for (std::size_t index = 0; index < tensor.size(); ++index) {
        const float expected = count * element(index, round) + ranks;
        if (tensor[index] == expected) continue;
        throw std::runtime_error("wrong sum in round " + std::to_string(round) + ": element " + std::to_string(index) +
                                 " is " + std::to_string(tensor[index]) + ", not " + std::to_string(expected));
    }
}

// The slowest rank's time: only then has everybody the sum.
double timed_round(GlooGroup& group, std::vector<float>& tensor, const Membership& membership, int round) {
    fill(tensor, membership.rank, round);
    group.barrier();
    const auto begin = std::chrono::steady_clock::now();
    group.all_reduce();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    verify(tensor, membership.world, round);
    return group.largest(elapsed.count());
}

std::vector<double> measure(const Options& options) {
    std::vector<float> tensor(options.bytes / sizeof(float));
    GlooGroup group = GlooGroup::join(options.membership, options.algorithm, tensor);
    std::vector<double> seconds;
    for (int round = 0; round < options.warmup + options.rounds; ++round) {
        const double elapsed = timed_round(group, tensor, options.membership, round);
        if (round >= options.warmup) seconds.push_back(elapsed);
    }
    group.barrier();  // who leaves early closes connections that others may still read from
    return seconds;
}

void print(const Options& options, const std::vector<double>& seconds) {
    std::vector<double> sorted = seconds;
    std::ranges::sort(sorted);
    const double median = sorted[sorted.size() / 2];
    const double goodput_bps = static_cast<double>(options.bytes) * 8 / median;
    if (!options.json) {
        std::printf("%s: %zu rounds of %llu bytes: %.6f s (%.6f .. %.6f), %.1f Mbit/s a rank\n",
                    options.algorithm_name.c_str(), sorted.size(), static_cast<unsigned long long>(options.bytes),
                    median, sorted.front(), sorted.back(), goodput_bps / 1e6);
        return;
    }
    const nlohmann::ordered_json result{{"algorithm", options.algorithm_name},
                                        {"bytes", options.bytes},
                                        {"rounds", seconds.size()},
                                        {"seconds", seconds},
                                        {"median_seconds", median},
                                        {"min_seconds", sorted.front()},
                                        {"max_seconds", sorted.back()},
                                        {"goodput_bps", goodput_bps},
                                        {"latency_us", median * 1e6}};
    std::printf("%s\n", result.dump().c_str());
}

int run(const Options& options) {
    try {
        const std::vector<double> seconds = measure(options);
        if (options.membership.rank == 0) print(options, seconds);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_gloo: rank %d: %s\n", options.membership.rank, error.what());
        return exit_failed;
    }
}

}  // namespace
}  // namespace atp::bench

int main(int argc, char** argv) {
    using namespace atp::bench;
    CLI::App app{
        "One rank of an all-reduce by Gloo over TCP: start as many of these as the world has ranks. Every sum is\n"
        "verified. Goodput is the tensor's bits over the median of the slowest rank's times."};
    app.name("bench_gloo");
    Options options;
    add_options(app, options);
    try {
        app.parse(argc, argv);
        if (options.membership.rank >= options.membership.world) {
            throw CLI::ValidationError("--rank", "must be below --world");
        }
        if (options.bytes % sizeof(float) != 0) throw CLI::ValidationError("--bytes", "must be a multiple of 4");
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : exit_bad_usage;
    }
    options.algorithm = algorithms().at(options.algorithm_name);
    options.membership.timeout =
        std::chrono::milliseconds(static_cast<std::chrono::milliseconds::rep>(options.timeout_seconds * 1000));
    return run(options);
}
