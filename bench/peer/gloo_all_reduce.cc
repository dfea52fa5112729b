// SPDX-License-Identifier: Apache-2.0
// bench_gloo: one rank of an all-reduce by Gloo over TCP, with which ATP is compared.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "all_reduce_rounds.h"
#include "gloo_group.h"

namespace atp::bench {
namespace {

constexpr int exit_failed = 1;
constexpr int exit_bad_usage = 2;
// Gloo's classes count bytes in an int.
constexpr std::uint64_t most_bytes = 2'000'000'000;

struct Options {
    Membership membership;
    Algorithm algorithm = Algorithm::ring;
    std::string algorithm_name = "ring";
    Rounds rounds;
    double timeout_seconds = 30;
};

void add_options(CLI::App& app, Options& options) {
    Membership& membership = options.membership;
    app.add_option("--rank", membership.rank, "rank of this process, below --world")
        ->required()
        ->check(CLI::Range(0, 1023));
    app.add_option("--world", membership.world, "number of processes")->required()->check(CLI::Range(1, 1024));
    app.add_option("--store", membership.store, "empty folder that all ranks share to form the group")
        ->required()
        ->check(CLI::ExistingDirectory);
    auto* interface = app.add_option("--interface", membership.interface, "local network interface");
    app.add_option("--address", membership.address, "local address")->excludes(interface);
    app.add_option("--algorithm", options.algorithm_name, "algorithm of Gloo")
        ->check(CLI::IsMember(algorithms()))
        ->capture_default_str();
    app.add_option("--bytes", options.rounds.bytes, "bytes of the float32 tensor, such as 25MB or 64KiB")
        ->transform(CLI::AsSizeValue(true))
        ->check(CLI::Range(std::uint64_t{sizeof(float)}, most_bytes))
        ->capture_default_str();
    app.add_option("--rounds", options.rounds.rounds, "measured operations; the result is their median")
        ->check(CLI::Range(1, 100'000))
        ->capture_default_str();
    app.add_option("--warmup", options.rounds.warmup, "operations before the measured ones")
        ->check(CLI::Range(0, 100'000))
        ->capture_default_str();
    app.add_option("--timeout", options.timeout_seconds, "longest wait for a peer in seconds")
        ->check(CLI::Range(0.1, 3600.0))
        ->capture_default_str();
    app.add_flag("--json", options.rounds.json, "print one JSON object at rank 0 instead of a line");
}

Measured measure(const Options& options) {
    std::vector<float> tensor(options.rounds.bytes / sizeof(float));
    GlooGroup group = GlooGroup::join(options.membership, options.algorithm, tensor);
    return measure(group, tensor, options.rounds, options.membership.rank, options.membership.world);
}

int run(const Options& options) {
    try {
        const Measured measured = measure(options);
        if (options.membership.rank == 0) print(options.rounds, options.algorithm_name, measured);
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
        "Run one rank of an all-reduce by Gloo over TCP; start one process per rank. Every sum is verified.\n"
        "Goodput is the bits of the tensor divided by the median time of the slowest rank."};
    app.name("bench_gloo");
    Options options;
    add_options(app, options);
    try {
        app.parse(argc, argv);
        if (options.membership.rank >= options.membership.world) {
            throw CLI::ValidationError("--rank", "is not below --world");
        }
        if (options.rounds.bytes % sizeof(float) != 0) throw CLI::ValidationError("--bytes", "is not a multiple of 4");
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : exit_bad_usage;
    }
    options.algorithm = algorithms().at(options.algorithm_name);
    options.membership.timeout =
        std::chrono::milliseconds(static_cast<std::chrono::milliseconds::rep>(options.timeout_seconds * 1000));
    return run(options);
}
