// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/result.h"

namespace atp::python {

// Marks the time in which this thread runs callbacks of a future. Threads: one object belongs to one thread; scopes
// nest.
class CallbackScope {
  public:
    CallbackScope() { ++depth; }
    ~CallbackScope() { --depth; }
    CallbackScope(const CallbackScope&) = delete;
    CallbackScope& operator=(const CallbackScope&) = delete;

    [[nodiscard]] static bool active() { return depth != 0; }

  private:
    static thread_local int depth;
};

// Threads that finish works: they copy results to the caller's tensors and run the callbacks of futures. Channel
// threads must not run callbacks, because the program supplies them and they have no time limit.
//
// Ownership: each thread shares this object and its works, so that a job may release the last other reference.
// Calling order: start(), then post() for each work, then stop(). Jobs begin in the order of posting, each when the
//   previous one is done. If a job takes longer than 5 ms, the next one begins on another thread: the job may be a
//   callback that waits for a future that a later job completes. stop() returns after every job that was posted before
//   it; after stop(), post() runs the job in the calling thread.
// Threads: any. Inside a CallbackScope, stop() does not wait for jobs, because one of them may wait for this callback.
// Failure: jobs must not throw.
class Completions : public std::enable_shared_from_this<Completions> {
  public:
    [[nodiscard]] static std::shared_ptr<Completions> start();
    ~Completions();
    Completions(const Completions&) = delete;
    Completions& operator=(const Completions&) = delete;

    void post(std::function<void()> job);
    void stop();

    // An operation of this group has failed: no later operation in the network can succeed.
    void note_failure(const Error& error);
    [[nodiscard]] bool failed() const { return failure().has_value(); }
    [[nodiscard]] std::optional<Error> failure() const;  // the first one

  private:
    using Clock = std::chrono::steady_clock;
    using Lock = std::unique_lock<std::mutex>;

    Completions() = default;
    void run();
    void wait_for_turn(Lock& lock);
    void add_thread();

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> jobs_;
    std::size_t running_ = 0;  // jobs that have begun and are not done
    Clock::time_point last_begun_;
    bool stopping_ = false;
    std::optional<Error> failure_;
    std::vector<std::thread> threads_;
};

}  // namespace atp::python
