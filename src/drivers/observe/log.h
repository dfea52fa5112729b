// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "observe/events.h"
#include "observe/log_text.h"
#include "observe/rate_limit.h"

namespace atp::observe {

struct LogConfig {
    Severity level = Severity::info;
    LogFormat format = LogFormat::text;
    RateLimit::Config limit{};
    std::size_t queued_lines = 8192;  // of the queue to standard error
    // Receives each line instead of standard error, without time and severity; called on the thread that writes.
    std::function<void(Severity, std::string_view line)> receiver{};
    std::function<void()> enter_thread{};  // called first by the thread that writes; empty: nothing is
};

// The log of a process: one line for each event, on standard error or to a receiver.
//
// Ownership: owns a queue of a bounded number of lines, and a thread that writes them to standard error, so that a
//   slow reader of standard error delays no packet. With a receiver it has neither.
// Calling order: write() any number of times; poll() now and then, so that counts of suppressed lines appear soon after
//   a flood. The destructor writes what is queued; if standard error is blocked, for at most 1 s.
// Threads: any thread calls write(), poll() and set_level(). The thread of the queue takes no signals.
// Failure: none. If the queue is full, the oldest line is dropped; the end of the log counts the dropped lines.
class Log {
  public:
    explicit Log(const LogConfig& config);
    ~Log();
    Log(const Log&) = delete;
    Log& operator=(const Log&) = delete;

    // `fields`: as src/events.toml lists the keys of the event. `source`: the host that caused the line; 0: none.
    void write(LogEvent event, const std::vector<LogField>& fields, std::uint64_t source = 0);
    void poll();
    // A log that was off at its start stays so.
    void set_level(Severity level) { level_ = level; }
    [[nodiscard]] bool writes(LogEvent event) const { return row_of(event).severity >= level_; }

  private:
    struct Queue;

    void finish();
    void report_suppressed(Time now);
    void emit(const EventRow& row, std::span<const LogField> fields);

    LogConfig config_;
    std::atomic<Severity> level_;  // from config_ at first
    std::mutex mutex_;             // guards limit_
    RateLimit limit_;
    std::unique_ptr<Queue> queue_;  // nullptr: the receiver gets the lines
};

}  // namespace atp::observe
