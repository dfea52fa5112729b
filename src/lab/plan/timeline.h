// SPDX-License-Identifier: Apache-2.0
// Jobs that compute and send in turns over shared links: each transfer is a fluid at the rate that it is given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "base/time.h"
#include "plan/max_min.h"
#include "workload/training.h"

namespace atp::plan {

struct Course {
    Duration iteration{};           // on average, without the first one
    std::vector<Duration> limited;  // by resource: in which it held back this job's transfer, of an iteration
};

// Every bucket of gradients is handed over when it appears, and moved after those before it.
//
// Calling order: add() each job, then run() once. Borrows the workloads. What a job does is workload::Training's, which
// is the simulator's too.
class Timeline {
  public:
    // Rates of those that send, in bytes of gradients a second.
    using Rates = std::function<const std::vector<Share>&(const std::vector<bool>& active)>;

    // `latency` passes between a bucket's last byte and its sum; `whole_buckets`: so does the time of a second
    // transfer.
    void add(const workload::Workload& workload, Duration latency, bool whole_buckets);
    // Until each job has gone through some iterations.
    [[nodiscard]] std::vector<Course> run(const Rates& rates, std::size_t resources);

  private:
    struct Sum {
        Time at;
        std::uint32_t bucket = 0;
    };
    struct Job {
        const workload::Workload* workload;
        Duration latency;
        bool whole_buckets;
        workload::Training training;
        std::deque<std::uint32_t> waiting;  // buckets; the first is being moved
        double left = 0;                    // bytes of it
        Time begun{};                       // its transfer
        std::deque<Sum> sums;               // on their way
        std::vector<Duration> limited;
    };

    [[nodiscard]] bool enough() const;
    void share(const Rates& rates);
    [[nodiscard]] Time next_event() const;
    void pass(Time until);
    void handle(Job& job);
    void hand_over(Job& job, workload::Training::Buckets buckets);
    void begin_transfer(Job& job) const;

    std::vector<Job> jobs_;
    std::vector<bool> active_;
    std::vector<Share> shares_;
    Time now_{};
};

}  // namespace atp::plan
