// SPDX-License-Identifier: Apache-2.0
// bench_gloo: one rank of an all-reduce by Gloo over TCP, with which ATP is compared.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "all_reduce_rounds.h"
#include "gloo_group.h"
#include "workload/models.h"
#include "workload/real_time.h"

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
    std::string model;  // empty: none
    workload::Bucketing bucketing;
    double timeout_seconds = 30;
};

// As `atp-lab bench` has them.
CLI::Option* add_model_options(CLI::App& app, Options& options) {
    const auto is_known = [](const std::string& name) {
        return workload::find_model(name) == nullptr ? "unknown; use " + workload::model_names() : std::string();
    };
    auto* model = app.add_option("--model", options.model,
                                 "sum the gradients of this model while ranks sleep for the time of its computation")
                      ->check(CLI::Validator(is_known, "NAME"));
    workload::Bucketing& bucketing = options.bucketing;
    app.add_option("--batch", bucketing.batch, "samples of a rank in an iteration [the model's]")
        ->needs(model)
        ->check(CLI::Range(1, 1'000'000));
    app.add_option("--scale", bucketing.scale, "divisor of the model's parameters, buckets and times")
        ->needs(model)
        ->check(CLI::Range(1.0, 1e9));
    app.add_option("--slowness", bucketing.slowness, "factor of the model's times")
        ->needs(model)
        ->check(CLI::Range(0.001, 1e6));
    app.add_option("--bucket", bucketing.bytes, "size of the buckets of the model's tensors, before scaling")
        ->needs(model)
        ->transform(CLI::AsSizeValue(true))
        ->check(CLI::Range(std::uint64_t{sizeof(float)}, most_bytes));
    return model;
}

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
    auto* bytes = app.add_option("--bytes", options.rounds.bytes, "bytes of the float32 tensor, such as 25MB or 64KiB")
                      ->transform(CLI::AsSizeValue(true))
                      ->check(CLI::Range(std::uint64_t{sizeof(float)}, most_bytes))
                      ->capture_default_str();
    add_model_options(app, options)->excludes(bytes);
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

Measured measure_tensor(const Options& options) {
    std::vector<float> tensor(options.rounds.bytes / sizeof(float));
    GlooGroup group = GlooGroup::join(options.membership, options.algorithm, {tensor});
    return measure(group, tensor, options.rounds, options.membership.rank, options.membership.world);
}

// An operation of Gloo blocks, so the thread that waits for the sums runs it.
workload::TrainingCalls::Wait sum_when_waited(GlooGroup& group, std::uint32_t bucket) {
    return [&group, bucket]() -> Result<void> {
        try {
            group.all_reduce(bucket);
            return {};
        } catch (const std::exception& error) {
            return fail(Operation::all_reduce, Reason::failed, {}, error.what());
        }
    };
}

// The iterations of a model, whose buckets are parts of one tensor. Sums of the last iteration are verified.
Measured measure_model(const Options& options, const workload::Workload& workload) {
    const auto [rank, world] = std::pair(options.membership.rank, options.membership.world);
    std::vector<float> tensor(options.rounds.bytes / sizeof(float));
    std::vector<std::span<float>> buckets;
    std::span<float> rest(tensor);
    for (const workload::Workload::Bucket& bucket : workload.buckets) {
        buckets.push_back(rest.first(bucket.elements));
        rest = rest.subspan(bucket.elements);
    }
    GlooGroup group = GlooGroup::join(options.membership, options.algorithm, buckets);
    apps::CpuTime cpu;
    unsigned last_iteration = 0;
    const auto start = [&](std::uint32_t number, unsigned iteration) -> Result<workload::TrainingCalls::Wait> {
        const auto first = static_cast<std::size_t>(buckets[number].data() - tensor.data());
        cpu.aside([&] { fill(buckets[number], rank, static_cast<int>(iteration), first); });
        last_iteration = iteration;
        return sum_when_waited(group, number);
    };
    const workload::IterationCounts counts{.warmup = static_cast<unsigned>(options.rounds.warmup),
                                           .measured = static_cast<unsigned>(options.rounds.rounds)};
    const auto own = workload::train(workload, counts, {.start = start, .warm = [&] { cpu.start(); }});
    cpu.stop();
    if (!own) throw std::runtime_error(to_string(own.error()));
    verify(tensor, world, static_cast<int>(last_iteration));
    Measured measured;
    for (const double seconds : *own) measured.seconds.push_back(group.largest(seconds));
    measured.cpu_seconds = group.total(cpu.seconds());
    group.barrier();  // a rank that leaves early closes connections from which other ranks may still read
    return measured;
}

Measured measure(Options& options) {
    const workload::Model* model = workload::find_model(options.model);
    if (model == nullptr) return measure_tensor(options);
    const workload::Workload workload = workload::workload_of(*model, options.bucketing);
    options.rounds.bytes = workload.elements() * sizeof(float);
    return measure_model(options, workload);
}

int run(Options& options) {
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
