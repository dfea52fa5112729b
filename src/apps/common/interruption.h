// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

#include "apps/common/signals.h"

namespace atp::apps {

// SIGINT and SIGTERM for a command whose main thread waits in calls that other threads can end.
//
// Calling order: made before any other thread; ends() for what is to be ended while its result lives; came() when the
// calls have returned. A process that has not ended a moment after the signal ended its calls is ended with
// exit_interrupted: some waits have nothing to clean up and no way to be ended.
// Owns: a thread, which waits for the signals and calls what ends() was given. Threads: all calls from one.
class Interruption {
  public:
    using End = std::function<void()>;

    // Takes its End back.
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

    // Called once, when a signal comes; at once where it came before.
    [[nodiscard]] Reach ends(End end);
    [[nodiscard]] bool came() const;

  private:
    void wait_for_signal();

    const StopSignals signals_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::list<End> ends_;
    bool came_ = false;
    bool over_ = false;  // the destructor has begun
    std::thread thread_;
};

}  // namespace atp::apps
