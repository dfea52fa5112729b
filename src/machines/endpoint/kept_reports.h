// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "base/time.h"

namespace atp::endpoint {

// The reports of a switch, of which questions read one part at a time. A reader of many parts needs some seconds, so
// the questions of others must neither replace its report nor fill the memory.
//
// Calling order: has_room() before the next report is made, then add().
// Threads: none. Failure: none.
class KeptReports {
  public:
    static constexpr Duration kept_for = std::chrono::seconds(3);
    static constexpr std::size_t most_bytes = 1U << 20U;  // of those younger than that; two are kept in any case

    struct KeptReport {
        std::uint32_t number = 0;  // never 0, with which STATS asks for a new one
        Time made_at{};
        std::string text;
    };

    // False: answer with the newest one until an older one may go.
    [[nodiscard]] bool has_room(Time now);
    const KeptReport& add(std::string text, Time now);
    // nullptr: never made, or gone.
    [[nodiscard]] const KeptReport* find(std::uint32_t number) const;
    [[nodiscard]] const KeptReport& newest() const { return reports_.back(); }

  private:
    std::deque<KeptReport> reports_;
    std::size_t bytes_ = 0;
    std::uint32_t last_ = 0;
};

}  // namespace atp::endpoint
