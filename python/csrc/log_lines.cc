// SPDX-License-Identifier: Apache-2.0
#include "log_lines.h"

#include <iterator>

namespace atp::python {
namespace {

int level_of(observe::Severity severity) {
    switch (severity) {
        case observe::Severity::trace: return 5;
        case observe::Severity::debug: return 10;
        case observe::Severity::info: return 20;
        case observe::Severity::warn: return 30;
        default: return 40;
    }
}

}  // namespace

void LogLines::push(observe::Severity severity, std::string_view line) {
    {
        const std::scoped_lock lock(mutex_);
        if (closed_ || lines_.size() == most_lines) return;
        lines_.emplace_back(level_of(severity), line);
    }
    changed_.notify_one();
}

std::vector<LogLines::Line> LogLines::take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !lines_.empty(); });
    std::vector<Line> taken(std::make_move_iterator(lines_.begin()), std::make_move_iterator(lines_.end()));
    lines_.clear();
    return taken;
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

}  // namespace atp::python
