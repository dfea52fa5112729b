// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace atp::python {

// A thread that finishes works: it copies results to where they belong and calls back whoever waits for a future.
// Channels must not do that, for callbacks are a program's own and take as long as they like.
//
// Calling order: start(), post() as often as wanted, stop(). What was posted before stop() is done before it returns;
// what is posted later is done at once by the caller, so nothing is ever forgotten.
// Threads: post() and note_failure() from any; stop() from any, and from a posted job it does not wait for itself.
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
    Completions() = default;
    void run();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> jobs_;
    bool stopping_ = false;
    std::atomic<bool> failed_{false};
    std::thread thread_;
};

}  // namespace atp::python
