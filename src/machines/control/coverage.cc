// SPDX-License-Identifier: Apache-2.0
#include "control/coverage.h"

#include <algorithm>

namespace atp::control {

bool Coverage::assess(std::uint32_t job, const protocol::SwitchCounters& counters, Time now) {
    CoveredJob& known = jobs_[job];
    const Counted counted{.claimed = counters.events[ATP_EVENT_CLAIMED],
                          .completed = counters.events[ATP_EVENT_COMPLETED],
                          .fetched = counters.events[ATP_EVENT_FETCHED]};
    const std::uint64_t claimed = counted.claimed - known.counted.claimed;
    const std::uint64_t completed = counted.completed - known.counted.completed;
    const std::uint64_t fetched = counted.fetched - known.counted.fetched;
    known.counted = counted;
    if (known.passes) {
        known.passes = now < known.until;
        return !known.passes;
    }
    const bool fruitless = claimed >= fewest_claims && 10 * completed < claimed && 2 * fetched >= claimed;
    known.fruitless = fruitless ? known.fruitless + 1 : 0;
    if (completed > claimed / 2) known.pause = first_pause;
    if (known.fruitless < fruitless_seconds) return true;
    known.passes = true;
    known.fruitless = 0;
    known.until = now + known.pause;
    known.pause = std::min(2 * known.pause, longest_pause);
    return false;
}

std::vector<std::uint32_t> Coverage::passing() const {
    std::vector<std::uint32_t> found;
    for (const auto& [job, known] : jobs_) {
        if (known.passes) found.push_back(job);
    }
    std::ranges::sort(found);
    return found;
}

}  // namespace atp::control
