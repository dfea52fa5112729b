// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"

namespace atp::observe {

// Bounds the lines of each kind of event: `most` in each period, which begins with the first line after the period
// before it. A flood of one kind therefore hides no other kind.
//
// Calling order: admit() for each line. poll_suppressed() until it returns nothing, at any time; it reports the kinds
//   whose period is over and that lost lines in it.
// Threads: none. Failure: none.
class RateLimit {
  public:
    struct Config {
        std::uint32_t most = 100;
        Duration period = std::chrono::seconds(10);
    };
    struct Suppressed {
        std::size_t kind = 0;
        std::uint64_t count = 0;
    };

    RateLimit(std::size_t kinds, const Config& config) : config_(config), kinds_(kinds) {}

    // False: suppress the line.
    [[nodiscard]] bool admit(std::size_t kind, Time now);
    // `now` = never: reports all, for the end of the log.
    [[nodiscard]] std::optional<Suppressed> poll_suppressed(Time now);

  private:
    struct Kind {
        Time begin{};
        std::uint32_t admitted = 0;  // 0: no period has begun
        std::uint64_t suppressed = 0;
    };

    [[nodiscard]] bool is_over(const Kind& kind, Time now) const { return now - kind.begin >= config_.period; }

    Config config_;
    std::vector<Kind> kinds_;
};

}  // namespace atp::observe
