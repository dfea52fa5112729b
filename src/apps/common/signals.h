// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <csignal>
#include <initializer_list>
#include <optional>

#include "base/time.h"

namespace atp::apps {

// SIGINT, SIGTERM and what a command names, for commands that run until they are stopped. Blocks the signals in every
// thread that starts later, so that they interrupt no system call; wait() takes them one by one. Construct it before
// any thread starts. The destructor discards further signals: a second Ctrl-C does not change the outcome of a command
// that has stopped.
class StopSignals {
  public:
    explicit StopSignals(std::initializer_list<int> more = {}) {
        sigemptyset(&set_);
        sigaddset(&set_, SIGINT);
        sigaddset(&set_, SIGTERM);
        sigaddset(&set_, SIGUSR1);
        for (const int signal : more) sigaddset(&set_, signal);
        pthread_sigmask(SIG_BLOCK, &set_, &before_);
    }
    ~StopSignals() {
        while (wait_for(Duration::zero())) continue;
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    StopSignals(const StopSignals&) = delete;
    StopSignals& operator=(const StopSignals&) = delete;

    // The next signal; SIGUSR1 comes from notify().
    [[nodiscard]] int wait() const {
        int signal = 0;
        sigwait(&set_, &signal);
        return signal;
    }
    // Nullopt if no signal comes in time.
    [[nodiscard]] std::optional<int> wait_for(Duration time) const {
        const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
        const timespec timeout{.tv_sec = seconds.count(), .tv_nsec = (time - seconds).count()};
        const int signal = sigtimedwait(&set_, nullptr, &timeout);
        return signal > 0 ? std::optional(signal) : std::nullopt;
    }
    // From any thread: wait() returns SIGUSR1.
    static void notify() { kill(getpid(), SIGUSR1); }

  private:
    sigset_t set_{};
    sigset_t before_{};
};

}  // namespace atp::apps
