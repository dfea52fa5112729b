// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string_view>

namespace atp::apps {

// One line that is overwritten, if standard error is a terminal; otherwise nothing.
class Progress {
  public:
    void show(std::string_view text) {
        const auto now = std::chrono::steady_clock::now();
        if (!terminal_ || now < next_) return;
        next_ = now + std::chrono::milliseconds(200);
        fmt::print(stderr, "\r{}\033[K", text);
        shown_ = true;
    }
    void clear() {
        if (shown_) fmt::print(stderr, "\r\033[K");
        shown_ = false;
    }

  private:
    bool terminal_ = isatty(STDERR_FILENO) != 0;
    bool shown_ = false;
    // Runs of less than 1 s show nothing.
    std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + std::chrono::seconds(1);
};

}  // namespace atp::apps
