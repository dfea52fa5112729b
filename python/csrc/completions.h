// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace atp::python {

// The time in which this thread runs callbacks of a future. Threads: one object belongs to one thread; scopes nest.
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

// Threads that finish works: they copy results to where they belong and call back whoever waits for a future.
// Channels must not do that, for callbacks are a program's own and take as long as they like.
//
// Jobs begin in the order in which they were posted, one when the one before is done. But a job that takes long may be
// a callback that waits for another operation's future, which a job behind it completes: so after a while the next one
// begins beside it, on a thread of its own.
//
// Calling order: start(), post() as often as wanted, stop(). What was posted before stop() is done before it returns;
// what is posted later is done at once by the caller, so nothing is ever forgotten.
// Threads: post() and note_failure() from any; stop() from any. In a CallbackScope, stop() does not wait for jobs: one
// of them may wait for this callback.
// Failure: jobs do not throw.
class Completions : public std::enable_shared_from_this<Completions> {
  public:
    [[nodiscard]] static std::shared_ptr<Completions> start();
    ~Completions();
    Completions(const Completions&) = delete;
    Completions& operator=(const Completions&) = delete;

    void post(std::function<void()> job);
    void stop();

    // Some operation of this group has failed, so the group is of no further use.
    void note_failure() { failed_ = true; }
    [[nodiscard]] bool failed() const { return failed_; }

  private:
    using Clock = std::chrono::steady_clock;
    using Lock = std::unique_lock<std::mutex>;

    Completions() = default;
    void run();
    void wait_for_turn(Lock& lock);
    void add_thread();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> jobs_;
    std::size_t running_ = 0;  // jobs that have begun and are not done
    Clock::time_point last_begun_;
    bool stopping_ = false;
    std::atomic<bool> failed_{false};
    std::vector<std::thread> threads_;
};

}  // namespace atp::python
