// SPDX-License-Identifier: Apache-2.0
#include "workload/real_time.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace atp::workload {
namespace {

using SteadyClock = std::chrono::steady_clock;

Time now() { return Time(SteadyClock::now().time_since_epoch()); }

// Waits for sums in the order in which they were started, on a thread of its own.
class SumsInOrder {
  public:
    SumsInOrder() : thread_([this] { run(); }) {}
    // Returns when no sum is in flight: their memory may go afterwards.
    ~SumsInOrder() {
        {
            const std::lock_guard lock(mutex_);
            closed_ = true;
        }
        started_.notify_one();
        thread_.join();
    }
    SumsInOrder(const SumsInOrder&) = delete;
    SumsInOrder& operator=(const SumsInOrder&) = delete;

    void add(std::uint32_t bucket, TrainingCalls::Wait wait) {
        {
            const std::lock_guard lock(mutex_);
            in_flight_.emplace_back(bucket, std::move(wait));
        }
        started_.notify_one();
    }

    // The buckets that were summed since the last call. Waits for one until `until`; if that is never, each sum still
    // has the deadline of its system.
    Result<std::vector<std::uint32_t>> summed(Time until) {
        std::unique_lock lock(mutex_);
        const auto changed = [&] { return error_ || !summed_.empty(); };
        if (until == never) {
            ended_.wait(lock, changed);
        } else {
            ended_.wait_until(lock, SteadyClock::time_point(until.time_since_epoch()), changed);
        }
        if (error_) return tl::unexpected(*error_);
        return std::exchange(summed_, {});
    }

  private:
    void run() {
        std::unique_lock lock(mutex_);
        while (true) {
            started_.wait(lock, [&] { return closed_ || !in_flight_.empty(); });
            if (in_flight_.empty()) return;
            const auto [bucket, wait] = std::move(in_flight_.front());
            in_flight_.pop_front();
            lock.unlock();
            const Result<void> done = wait();
            lock.lock();
            if (done) {
                summed_.push_back(bucket);
            } else if (!error_) {
                error_ = done.error();
            }
            ended_.notify_one();
        }
    }

    std::mutex mutex_;
    std::condition_variable started_;
    std::condition_variable ended_;
    std::deque<std::pair<std::uint32_t, TrainingCalls::Wait>> in_flight_;
    std::vector<std::uint32_t> summed_;
    std::optional<Error> error_;
    bool closed_ = false;
    std::thread thread_;  // the last one: it uses the others
};

// The rank computes in the time of its schedule, so that a late wake-up delays no later bucket.
Result<void> compute_until(Time until, Training& training, SumsInOrder& sums, const TrainingCalls& calls) {
    while (training.due(0) <= until) {
        const Training::Buckets ready = training.advance(0, training.due(0));
        for (std::uint32_t bucket = ready.first; bucket < ready.last; ++bucket) {
            auto wait = calls.start(bucket, training.iterations_done(0));
            if (!wait) return tl::unexpected(wait.error());
            sums.add(bucket, *std::move(wait));
        }
    }
    return {};
}

}  // namespace

Result<std::vector<double>> train(const Workload& workload, const IterationCounts& counts, const TrainingCalls& calls) {
    const unsigned warmup = std::max(counts.warmup, 1U);
    Training training(workload, 1, warmup + counts.measured);
    SumsInOrder sums;
    std::vector<double> seconds;
    Time last_end{};
    training.begin(0, 0, now());
    while (!training.finished(0)) {
        if (auto started = compute_until(now(), training, sums, calls); !started)
            return tl::unexpected(started.error());
        const auto summed = sums.summed(training.due(0));
        if (!summed) return tl::unexpected(summed.error());
        const Time at = now();
        const unsigned done = training.iterations_done(0);
        for (const std::uint32_t bucket : *summed) training.summed(0, bucket, at);
        if (training.iterations_done(0) == done) continue;
        if (training.iterations_done(0) > warmup) seconds.push_back(to_seconds(at - last_end));
        if (training.iterations_done(0) == warmup && calls.warm) calls.warm();
        last_end = at;
    }
    return seconds;
}

}  // namespace atp::workload
