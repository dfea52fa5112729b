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
// Such a job is forwarded unaggregated for 30 s. Each further pause is twice as long, up to 32 min. After a call in
// which more than half of the claimed fragments have completed here, the next pause is 30 s again.
//
// Calling order: assess() for each job about once a second; forget() when a job is removed.
// Threads: none. Failure: none.
class Coverage {
  public:
    // A job is forwarded unaggregated after this many fruitless calls in a row, one per second. One late worker does
    // not make a call fruitless: the other workers claim nothing while they wait for it.
    static constexpr unsigned fruitless_seconds = 3;
    static constexpr std::uint64_t fewest_claims = 16;  // per call; with fewer claims, the call is not fruitless
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
        unsigned fruitless = 0;  // calls in a row with completions below 10 % and fetches of 50 % of the claims
        bool passes = false;     // forwarded unaggregated until `until`
        Time until{};
        Duration pause = first_pause;  // length of the next pause
    };

    std::map<std::uint32_t, CoveredJob> jobs_;
};

}  // namespace atp::control
