// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

#include "apps/common/signals.h"

namespace atp::apps {

// Handles SIGINT and SIGTERM for a command whose main thread waits in calls that other threads can end.
//
// Ownership: owns a thread, which waits for the signals and calls the functions that ends() was given.
// Calling order: construct it before any other thread starts. Call ends() for each object to be ended, and keep the
//   returned Reach as long as the object may be ended. Call came() after the calls that wait have returned.
// Threads: one thread makes all calls.
// Failure: if the process does not end within 2 s of the signal, it exits with exit_interrupted: some waits cannot be
//   ended, and have nothing to clean up.
class Interruption {
  public:
    using End = std::function<void()>;

    // The destructor withdraws the End that ends() registered.
    class Reach {
      public:
        Reach(Interruption& interruption, std::list<End>::iterator end) : interruption_(interruption), end_(end) {}
        ~Reach();
        Reach(const Reach&) = delete;
        Reach& operator=(const Reach&) = delete;

      private:
        Interruption& interruption_;
        std::list<End>::iterator end_;
    };

    Interruption();
    ~Interruption();
    Interruption(const Interruption&) = delete;
    Interruption& operator=(const Interruption&) = delete;

    // Calls `end` once, when a signal comes; at once if a signal came before.
    [[nodiscard]] Reach ends(End end);
    [[nodiscard]] bool came() const;
    // True as soon as a signal has come, false after `time`.
    [[nodiscard]] bool wait_for(Duration time) const;

  private:
    void wait_for_signal();

    const StopSignals signals_;
    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    std::list<End> ends_;
    bool came_ = false;
    bool over_ = false;  // the destructor has begun
    std::thread thread_;
};

}  // namespace atp::apps
