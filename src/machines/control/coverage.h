// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "protocol/switch.h"

namespace atp::control {

// Whether all of a job passes here. Where one of its workers has another way to the server, what the others send is
// gathered, never completed, and fetched again by who misses it, which takes a timer for each: far slower than no
// switch at all. Such a job is let pass for a while, longer each time.
//
// Calling order: judge() for each job about once a second; forget() one that is gone. Threads: none. Failure: none.
class Coverage {
  public:
    // Of such seconds in a row. A worker that is late holds up the others, who claim nothing in the meantime.
    static constexpr unsigned fruitless_seconds = 3;
    static constexpr std::uint64_t fewest_claims = 16;  // of a second that says anything
    static constexpr Duration first_pause = std::chrono::seconds(30);
    static constexpr Duration longest_pause = std::chrono::minutes(32);

    // With its counters so far. True: it is to be aggregated; false: to pass.
    [[nodiscard]] bool judge(std::uint32_t job, const protocol::SwitchCounters& counters, Time now);
    void forget(std::uint32_t job) { jobs_.erase(job); }

    // Those that were to pass when they were last judged.
    [[nodiscard]] std::vector<std::uint32_t> passing() const;

  private:
    struct Counted {
        std::uint64_t claimed = 0, completed = 0, fetched = 0;
    };
    struct Job {
        Counted counted;
        unsigned fruitless = 0;  // seconds in a row
        bool passes = false;
        Time until{};
        Duration pause = first_pause;  // the next one
    };

    std::unordered_map<std::uint32_t, Job> jobs_;
};

}  // namespace atp::control
