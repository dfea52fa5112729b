// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <string_view>

#include "base/time.h"
#include "net/clock.h"

namespace atp::observe {

// Writes lines to standard error. If no process reads it, the sink waits while the process runs, and then drops the
// lines: a pipe without a reader must not keep the process from ending.
//
// Threads: the queue's; end_by() from any. Failure: a line that cannot be written is dropped.
class StderrSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
  public:
    void end_by(Time deadline) { deadline_ = deadline.time_since_epoch().count(); }

  private:
    void sink_it_(const spdlog::details::log_msg& message) override {
        spdlog::memory_buf_t line;
        formatter_->format(message, line);
        std::string_view rest(line.data(), line.size());
        while (!rest.empty() && is_writable()) {
            const ssize_t count = ::write(STDERR_FILENO, rest.data(), std::min(rest.size(), atomic_bytes));
            if (count > 0) rest.remove_prefix(static_cast<std::size_t>(count));
            if (count < 0 && errno != EINTR && errno != EAGAIN) return;
        }
    }
    void flush_() override {}

    [[nodiscard]] bool is_writable() const {
        constexpr int pause_ms = 50;
        pollfd descriptor{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
        for (;;) {
            const bool late = net::now() >= Time(Duration(deadline_));
            if (poll(&descriptor, 1, late ? 0 : pause_ms) > 0) return true;
            if (late) return false;
        }
    }

    // A pipe that poll() calls writable takes so many bytes without a pause.
    static constexpr std::size_t atomic_bytes = PIPE_BUF;

    std::atomic<Duration::rep> deadline_{never.time_since_epoch().count()};
};

}  // namespace atp::observe
