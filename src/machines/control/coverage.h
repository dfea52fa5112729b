// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/time.h"
#include "protocol/switch.h"

namespace atp::control {

// Detects jobs of which only a part passes this switch. If one worker reaches the server by another path, fragments are
// claimed here but never completed. A resend fetches each one after a timeout, which is far slower than no aggregation.
// Such a job is forwarded unaggregated for 30 s, and each time for twice as long, up to 32 min.
// The pause returns to 30 s when most of the job's claimed fragments complete here.
//
// Calling order: assess() for each job about once a second; forget() when a job is removed.
// Threads: none. Failure: none.
class Coverage {
  public:
    // In a row, before a job is forwarded unaggregated. One late worker cannot cause them: the others claim nothing
    // while they wait for it.
    static constexpr unsigned fruitless_seconds = 3;
    static constexpr std::uint64_t fewest_claims = 16;  // per call; with fewer, a second is not fruitless
    static constexpr Duration first_pause = std::chrono::seconds(30);
    static constexpr Duration longest_pause = std::chrono::minutes(32);

    // `counters` are the totals of the job. True: aggregate the job; false: forward it unaggregated.
    [[nodiscard]] bool assess(std::uint32_t job, const protocol::SwitchCounters& counters, Time now);
    void forget(std::uint32_t job) { jobs_.erase(job); }

    // The jobs for which the last assess() returned false, in ascending order.
    [[nodiscard]] std::vector<std::uint32_t> passing() const;

  private:
    struct Counted {  // totals at the last assess()
        std::uint64_t claimed = 0, completed = 0, fetched = 0;
    };
    struct CoveredJob {
        Counted counted;
        unsigned fruitless = 0;  // calls of assess() in a row with claims, few completions and many fetches
        bool passes = false;     // forwarded unaggregated until `until`
        Time until{};
        Duration pause = first_pause;  // length of the next pause
    };

    std::map<std::uint32_t, CoveredJob> jobs_;
};

}  // namespace atp::control
