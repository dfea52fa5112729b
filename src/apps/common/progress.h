// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string_view>

namespace atp::apps {

// What long work does at the moment, on standard error: on a terminal one line that is overwritten, elsewhere a line a
// minute.
class Progress {
  public:
    void show(std::string_view text) {
        const auto now = std::chrono::steady_clock::now();
        if (now < next_) return;
        next_ = now + (terminal_ ? std::chrono::milliseconds(200) : a_minute);
        if (terminal_) {
            fmt::print(stderr, "\r{}\033[K", text);
        } else {
            fmt::print(stderr, "{}\n", text);
        }
        shown_ = terminal_;
    }
    void clear() {
        if (shown_) fmt::print(stderr, "\r\033[K");
        shown_ = false;
    }

  private:
    static constexpr std::chrono::milliseconds a_minute = std::chrono::minutes(1);

    bool terminal_ = isatty(STDERR_FILENO) != 0;
    bool shown_ = false;
    // Short runs show nothing.
    std::chrono::steady_clock::time_point next_ =
        std::chrono::steady_clock::now() + (terminal_ ? std::chrono::seconds(1) : a_minute);
};

}  // namespace atp::apps
