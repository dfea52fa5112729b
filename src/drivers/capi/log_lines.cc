// SPDX-License-Identifier: Apache-2.0
#include "capi/log_lines.h"

#include <array>
#include <cstddef>
#include <utility>

#include "base/older_symbols.h"

namespace atp::capi {
namespace {

// tools/write_events writes the levels from src/events.toml.
constexpr std::array python_levels{5, 10, 20, 30, 40, 51};  // of module logging, by observe::Severity
// End of the written part.

}  // namespace

void LogLines::push(observe::Severity severity, std::string_view line) {
    {
        const std::scoped_lock lock(mutex_);
        if (closed_ || lines_.size() == most_lines) return;
        lines_.emplace_back(python_levels[static_cast<std::size_t>(severity)], line);
    }
    changed_.notify_one();
}

std::optional<LogLines::Line> LogLines::take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !lines_.empty(); });
    if (lines_.empty()) return std::nullopt;
    Line line = std::move(lines_.front());
    lines_.pop_front();
    return line;
}

void LogLines::close() {
    {
        const std::scoped_lock lock(mutex_);
        closed_ = true;
    }
    changed_.notify_all();
}

// Never destroyed: a thread may wait in it while the process ends.
LogLines& log_lines() {
    static LogLines& lines = *new LogLines;
    return lines;
}

}  // namespace atp::capi
