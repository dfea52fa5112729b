// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"

namespace atp::observe {

// Bounds the lines of each kind of event: `most` in each period, which begins with the first line after the period
// before it. A flood of one kind therefore hides no other kind. Lines that others cause have a source, such as a host:
// each source has `most` lines of a kind, and all sources together ten times as many, so that one host hides no line
// of another. The table of sources has a fixed size; where two have one place, the later one takes it.
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

    RateLimit(std::size_t kinds, const Config& config) : config_(config), kinds_(kinds), sources_(most_sources) {}

    // False: suppress the line. `source`: 0: none.
    [[nodiscard]] bool admit(std::size_t kind, Time now, std::uint64_t source = 0);
    // `now` = never: reports all, for the end of the log.
    [[nodiscard]] std::optional<Suppressed> poll_suppressed(Time now);

  private:
    static constexpr std::size_t most_sources = 512;
    static constexpr std::uint32_t busy_sources = 10;

    struct Period {
        Time begin{};
        std::uint32_t admitted = 0;  // 0: no period has begun
    };
    struct Kind {
        Period own;      // lines without a source
        Period sourced;  // lines of all sources
        std::uint64_t suppressed = 0;
    };
    struct Source {
        std::uint64_t source = 0;
        std::size_t kind = 0;
        Period period;
    };

    [[nodiscard]] bool is_over(const Period& period, Time now) const { return now - period.begin >= config_.period; }
    [[nodiscard]] bool is_spent(const Period& period, std::uint32_t most, Time now) const {
        return period.admitted >= most && !is_over(period, now);
    }
    void count(Period& period, Time now) const;

    Config config_;
    std::vector<Kind> kinds_;
    std::vector<Source> sources_;
};

}  // namespace atp::observe
