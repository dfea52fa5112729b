// SPDX-License-Identifier: Apache-2.0
// bench_host_floor: what ranks that share memory need at least for a sum. Each chunk of a tensor is converted, added
// and stored, and counters in the memory say how far all are. There is no check of operations, no deadline, and no rank
// may fail. ATP's host level is compared with it.
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "numeric/lanes32_sums.h"
#include "numeric/lanes32_worker.h"
#include "numeric/rank_sums.h"
#include "wire/format.h"

namespace atp::bench {
namespace {

constexpr int exit_failed = 1;
constexpr int exit_bad_usage = 2;
constexpr unsigned slots = 4;
constexpr unsigned most_ranks = 64;
constexpr std::size_t most_range = 16384;  // lanes that are added at a time
constexpr float scale = 1e8F;
constexpr unsigned longest_seconds = 300;  // then each process ends: a rank whose peer died would wait for ever

struct Options {
    unsigned ranks = 2;
    std::uint64_t bytes = 25'000'000;
    std::uint64_t chunk_bytes = 262'144;
    unsigned rounds = 15;
    unsigned warmup = 3;
    bool floats = false;
    bool json = false;
};

// Counts the steps of all ranks. A rank sleeps until enough have been taken.
class Counter {
  public:
    void step(unsigned ranks) {
        const std::uint32_t taken = value_.fetch_add(1, std::memory_order_acq_rel) + 1;
        if (taken % ranks == 0) syscall(SYS_futex, &value_, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
    }
    void wait(std::uint32_t least) {
        for (std::uint32_t seen = value_.load(std::memory_order_acquire); static_cast<std::int32_t>(seen - least) < 0;
             seen = value_.load(std::memory_order_acquire)) {
            syscall(SYS_futex, &value_, FUTEX_WAIT, seen, nullptr, nullptr, 0);
        }
    }

  private:
    alignas(64) std::atomic<std::uint32_t> value_{0};
};

struct Control {
    std::array<Counter, slots> loaded, added, stored;
    Counter begun, ended;
    std::array<double, most_ranks> seconds{};
    std::atomic<bool> wrong{false};
};

// One rank. All ranks have the same memory: first the control part, then `ranks` places and one of sums for each slot.
class Rank {
  public:
    Rank(const Options& options, unsigned rank, Control& control, std::byte* places)
        : options_(options),
          rank_(rank),
          control_(control),
          places_(places),
          count_(options.bytes / sizeof(float)),
          chunk_(options.chunk_bytes / sizeof(float)),
          chunks_((count_ + chunk_ - 1) / chunk_),
          in_(count_),
          out_(count_) {
        for (std::size_t at = 0; at < count_; ++at) in_[at] = own(at, rank);
    }

    // The slowest rank's time of each round, at rank 0.
    std::vector<double> run() {
        std::vector<double> seconds;
        for (unsigned round = 0; round < options_.warmup + options_.rounds; ++round) {
            std::ranges::fill(out_, -1.0F);
            control_.begun.step(options_.ranks);
            control_.begun.wait((round + 1) * options_.ranks);
            const auto begin = std::chrono::steady_clock::now();
            sum();
            const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
            control_.seconds[rank_] = taken.count();
            if (!right()) control_.wrong = true;
            control_.ended.step(options_.ranks);
            control_.ended.wait((round + 1) * options_.ranks);
            if (round < options_.warmup) continue;
            seconds.push_back(std::ranges::max(std::span(control_.seconds).first(options_.ranks)));
        }
        return seconds;
    }

  private:
    static float own(std::size_t at, unsigned rank) { return static_cast<float>(at % 4093 + rank) * 0x1p-20F; }

    // Each chunk is loaded, added and stored one step after the other, so that no rank waits for what it could do.
    void sum() {
        for (std::size_t step = 0; step < chunks_ + 2; ++step) {
            if (step < chunks_) load(step);
            if (step >= 1 && step <= chunks_) add(step - 1);
            if (step >= 2) store(step - 2);
        }
        base_ += chunks_;
    }
    void load(std::size_t chunk) {
        const std::uint64_t number = base_ + chunk;
        control_.stored[number % slots].wait(uses_of(number));
        std::byte* const place = place_of(number, rank_);
        const float* const from = in_.data() + chunk * chunk_;
        if (options_.floats) {
            numeric::floats_to_wire(from, lanes_of(chunk), place);
        } else if (!numeric::quantise(from, lanes_of(chunk), scale, place)) {
            control_.wrong = true;
        }
        control_.loaded[number % slots].step(options_.ranks);
    }
    void add(std::size_t chunk) {
        const std::uint64_t number = base_ + chunk;
        control_.loaded[number % slots].wait(uses_of(number) + options_.ranks);
        const std::size_t share = (lanes_of(chunk) + options_.ranks - 1) / options_.ranks;
        const std::size_t end = std::min(lanes_of(chunk), (rank_ + 1) * share);
        for (std::size_t at = std::min(rank_ * share, end); at < end; at += most_range) {
            add_range(number, at, std::min(most_range, end - at));
        }
        control_.added[number % slots].step(options_.ranks);
    }
    void add_range(std::uint64_t number, std::size_t at, std::size_t count) {
        std::array<const std::byte*, most_ranks> places;
        for (unsigned rank = 0; rank < options_.ranks; ++rank) {
            places[rank] = place_of(number, rank) + at * ATP_LANE_BYTES;
        }
        std::byte* const sums = place_of(number, options_.ranks) + at * ATP_LANE_BYTES;
        if (options_.floats) {
            numeric::sum_float_ranks(std::span(places).first(options_.ranks), count, scale, sums);
            return;
        }
        numeric::sums_assign(places[0], count, wide_.data());
        for (unsigned rank = 1; rank < options_.ranks; ++rank) numeric::sums_add(places[rank], count, wide_.data());
        numeric::sums_to_floats(wide_.data(), count, 1.0 / double{scale}, sums);
    }
    void store(std::size_t chunk) {
        const std::uint64_t number = base_ + chunk;
        control_.added[number % slots].wait(uses_of(number) + options_.ranks);
        numeric::floats_from_wire(place_of(number, options_.ranks), lanes_of(chunk), out_.data() + chunk * chunk_);
        control_.stored[number % slots].step(options_.ranks);
    }
    [[nodiscard]] bool right() const {
        for (std::size_t at = 0; at < count_; ++at) {
            double sum = 0;
            for (unsigned rank = 0; rank < options_.ranks; ++rank) sum += double{own(at, rank)};
            if (std::abs(double{out_[at]} - sum) > 1e-6) return false;
        }
        return true;
    }
    // Steps on a counter of the slot before this chunk.
    [[nodiscard]] std::uint32_t uses_of(std::uint64_t number) const {
        return static_cast<std::uint32_t>(number / slots * options_.ranks);
    }
    [[nodiscard]] std::size_t lanes_of(std::size_t chunk) const { return std::min(chunk_, count_ - chunk * chunk_); }
    [[nodiscard]] std::byte* place_of(std::uint64_t number, unsigned place) const {
        return places_ + ((number % slots) * (options_.ranks + 1) + place) * options_.chunk_bytes;
    }

    const Options& options_;
    unsigned rank_;
    Control& control_;
    std::byte* places_;
    std::size_t count_;
    std::size_t chunk_;
    std::size_t chunks_;
    std::uint64_t base_ = 0;  // chunks of earlier rounds
    std::vector<float> in_;
    std::vector<float> out_;
    std::vector<std::int64_t> wide_ = std::vector<std::int64_t>(most_range);
};

int report(const Options& options, std::vector<double> seconds) {
    const char* const how = options.floats ? "floats" : "integers";
    std::ranges::sort(seconds);
    const double median = seconds[seconds.size() / 2];
    if (options.json) {
        const nlohmann::ordered_json result{
            {"ranks", options.ranks}, {"bytes", options.bytes}, {"how", how}, {"median_seconds", median}};
        std::printf("%s\n", result.dump().c_str());
    } else {
        std::printf("%u ranks, %llu bytes, %s: median %.3f ms\n", options.ranks,
                    static_cast<unsigned long long>(options.bytes), how, median * 1e3);
    }
    return 0;
}

int run(const Options& options) {
    alarm(longest_seconds);
    const std::size_t bytes = sizeof(Control) + std::size_t{slots} * (options.ranks + 1) * options.chunk_bytes;
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        std::perror("bench_host_floor: memory");
        return exit_failed;
    }
    auto* const control = new (memory) Control;
    std::byte* const places = static_cast<std::byte*>(memory) + sizeof(Control);
    std::vector<pid_t> others;
    for (unsigned rank = 1; rank < options.ranks; ++rank) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(longest_seconds);
            Rank(options, rank, *control, places).run();
            _exit(0);
        }
        others.push_back(child);
    }
    const std::vector<double> seconds = Rank(options, 0, *control, places).run();
    for (const pid_t child : others) waitpid(child, nullptr, 0);
    if (control->wrong) {
        std::fprintf(stderr, "bench_host_floor: wrong sum\n");
        return exit_failed;
    }
    return report(options, seconds);
}

}  // namespace
}  // namespace atp::bench

int main(int argc, char** argv) {
    using namespace atp::bench;
    CLI::App app{"Measure the sum of ranks that share memory with nothing but conversion, addition and counters."};
    app.name("bench_host_floor");
    Options options;
    app.add_option("--ranks", options.ranks, "number of processes")
        ->check(CLI::Range(1U, most_ranks))
        ->capture_default_str();
    app.add_option("--bytes", options.bytes, "bytes of the float32 tensor, such as 25MB or 64KiB")
        ->transform(CLI::AsSizeValue(true))
        ->check(CLI::Range(std::uint64_t{4}, std::uint64_t{2'000'000'000}))
        ->capture_default_str();
    app.add_option("--chunk", options.chunk_bytes, "bytes of a chunk")
        ->transform(CLI::AsSizeValue(true))
        ->check(CLI::Range(std::uint64_t{64}, std::uint64_t{64U << 20U}))
        ->capture_default_str();
    app.add_option("--rounds", options.rounds, "measured operations; the result is their median")
        ->check(CLI::Range(1U, 100'000U))
        ->capture_default_str();
    app.add_option("--warmup", options.warmup, "operations before the measured ones")
        ->check(CLI::Range(0U, 100'000U))
        ->capture_default_str();
    app.add_flag("--floats", options.floats, "share floats, which the ranks that add convert, in place of integers");
    app.add_flag("--json", options.json, "print one JSON object instead of a line");
    try {
        app.parse(argc, argv);
        if (options.bytes % 4 != 0) throw CLI::ValidationError("--bytes", "is not a multiple of 4");
        if (options.chunk_bytes % 64 != 0) throw CLI::ValidationError("--chunk", "is not a multiple of 64");
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : exit_bad_usage;
    }
    return run(options);
}
