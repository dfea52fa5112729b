// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "observe/events.h"

namespace atp::capi {

// Lines of the logs of all groups, on their way from native threads to a Python thread, which gives them to Python's
// logger. Native threads therefore never wait for Python's lock.
//
// Ownership: owns at most `most_lines`. Calling order: push() any number of times, take() in a loop until close().
// Threads: any thread calls all functions. Failure: if it is full, push() drops the line.
class LogLines {
  public:
    // A severity as a level of Python's module logging, and the line.
    using Line = std::pair<int, std::string>;

    void push(observe::Severity severity, std::string_view line);
    // Waits for a line. nullopt: close() was called, and no line is left.
    [[nodiscard]] std::optional<Line> take();
    void close();

  private:
    static constexpr std::size_t most_lines = 1024;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Line> lines_;
    bool closed_ = false;
};

// The lines of this process.
[[nodiscard]] LogLines& log_lines();

}  // namespace atp::capi
