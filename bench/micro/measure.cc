// SPDX-License-Identifier: Apache-2.0
#include "measure.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "base/median.h"

namespace atp::bench {
namespace {

// Stores the processor time per pass of the last run instead of printing it.
class Collector : public benchmark::BenchmarkReporter {
  public:
    bool ReportContext(const Context&) override { return true; }
    void ReportRuns(const std::vector<Run>& runs) override {
        for (const Run& run : runs) {
            seconds_per_pass_ = run.cpu_accumulated_time / static_cast<double>(run.iterations);
        }
    }
    [[nodiscard]] double seconds_per_pass() const { return seconds_per_pass_; }

  private:
    double seconds_per_pass_ = 0.0;
};

// Runs a side. Measures processor time of this thread, which excludes other programs on a shared host.
double seconds_per_pass(const std::string& name) {
    Collector collector;
    benchmark::RunSpecifiedBenchmarks(&collector, "^" + name + "/");
    return collector.seconds_per_pass();
}

struct Side {
    const std::function<void()>& prepare;
    const std::function<void()>& pass;
};

// Number of passes that fit a round. The first pass warms up: it touches every page.
std::int64_t passes_that_fit(const Side& side, double round_seconds) {
    using Clock = std::chrono::steady_clock;
    side.prepare();
    side.pass();
    side.prepare();
    const auto start = Clock::now();
    side.pass();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(round_seconds / std::max(seconds, 1e-9)));
}

void enlist(const std::string& name, const Side& side, double round_seconds) {
    const auto loop = [side](benchmark::State& state) {
        for ([[maybe_unused]] auto _ : state) {
            state.PauseTiming();
            side.prepare();
            state.ResumeTiming();
            side.pass();
            benchmark::ClobberMemory();
        }
    };
    benchmark::RegisterBenchmark(name.c_str(), loop)->Iterations(passes_that_fit(side, round_seconds));
}

}  // namespace

Figure measure(const Subject& subject, const Effort& effort) {
    const std::string names[2] = {subject.name, subject.name + "_limit"};
    const std::function<void()> nothing = [] {};
    enlist(names[0], {subject.prepare, subject.pass}, effort.round_seconds);
    enlist(names[1], {nothing, subject.limit_pass}, effort.round_seconds);
    std::vector<double> seconds[2];
    for (int round = 0; round < effort.rounds; ++round) {
        // Alternate the order, so that no side always starts with the cache contents of the other side.
        for (const int side : {round % 2, 1 - round % 2}) {
            seconds[side].push_back(seconds_per_pass(names[side]));
        }
    }
    benchmark::ClearRegisteredBenchmarks();

    Figure figure;
    figure.name = subject.name;
    figure.unit = subject.unit;
    figure.bar = subject.bar;
    figure.value = subject.units_per_pass / median(seconds[0]);
    figure.limit = subject.units_per_pass / median(seconds[1]);
    figure.share = figure.value / figure.limit;
    // The roofline may have overwritten the same memory: verify after one more pass of the work.
    subject.prepare();
    subject.pass();
    figure.verified = subject.verify();
    return figure;
}

void copy_bytes(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

std::uint64_t hash_bytes(const void* bytes, std::size_t size) {
    constexpr std::uint64_t offset_basis = 0xCBF29CE484222325;
    constexpr std::uint64_t prime = 0x100000001B3;
    const auto* at = static_cast<const unsigned char*>(bytes);
    std::uint64_t hash = offset_basis;
    for (; size >= sizeof(std::uint64_t); at += sizeof(std::uint64_t), size -= sizeof(std::uint64_t)) {
        std::uint64_t word;
        std::memcpy(&word, at, sizeof word);
        hash = (hash ^ word) * prime;
    }
    for (; size > 0; ++at, --size) {
        hash = (hash ^ *at) * prime;
    }
    return hash;
}

}  // namespace atp::bench
