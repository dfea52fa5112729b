// SPDX-License-Identifier: Apache-2.0
// bench_mpi: an all-reduce by MPI, with which ATP is compared. mpirun starts it.
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "all_reduce_rounds.h"

namespace atp::bench {
namespace {

constexpr int exit_failed = 1;
constexpr int exit_bad_usage = 2;
// MPI counts elements in an int.
constexpr std::uint64_t most_bytes = 8'000'000'000;

// MPI ends all processes if a call fails.
class MpiGroup {
  public:
    explicit MpiGroup(std::vector<float>& tensor) : tensor_(tensor) {}

    static void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
    void all_reduce() {
        MPI_Allreduce(MPI_IN_PLACE, tensor_.data(), static_cast<int>(tensor_.size()), MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
    }
    static double largest(double value) {
        MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        return value;
    }
    static double total(double value) {
        MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        return value;
    }

  private:
    std::vector<float>& tensor_;
};

void run(const Rounds& rounds) {
    int rank = 0;
    int world = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    std::vector<float> tensor(rounds.bytes / sizeof(float));
    MpiGroup group(tensor);
    const Measured measured = measure(group, tensor, rounds, rank, world);
    if (rank == 0) print(rounds, "mpi", measured);
}

int run_under_mpi(const Rounds& rounds) {
    MPI_Init(nullptr, nullptr);
    try {
        run(rounds);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_mpi: %s\n", error.what());
        MPI_Abort(MPI_COMM_WORLD, exit_failed);
    }
    MPI_Finalize();
    return 0;
}

}  // namespace
}  // namespace atp::bench

int main(int argc, char** argv) {
    using namespace atp::bench;
    CLI::App app{
        "Run one rank of an all-reduce by MPI; mpirun starts one process per rank. Every sum is verified.\n"
        "Goodput is the bits of the tensor divided by the median time of the slowest rank."};
    app.name("bench_mpi");
    Rounds rounds;
    app.add_option("--bytes", rounds.bytes, "bytes of the float32 tensor, such as 25MB or 64KiB")
        ->transform(CLI::AsSizeValue(true))
        ->check(CLI::Range(std::uint64_t{sizeof(float)}, most_bytes))
        ->capture_default_str();
    app.add_option("--rounds", rounds.rounds, "measured operations; the result is their median")
        ->check(CLI::Range(1, 100'000))
        ->capture_default_str();
    app.add_option("--warmup", rounds.warmup, "operations before the measured ones")
        ->check(CLI::Range(0, 100'000))
        ->capture_default_str();
    app.add_flag("--json", rounds.json, "print one JSON object at rank 0 instead of a line");
    try {
        app.parse(argc, argv);
        if (rounds.bytes % sizeof(float) != 0) throw CLI::ValidationError("--bytes", "is not a multiple of 4");
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : exit_bad_usage;
    }
    return run_under_mpi(rounds);
}
