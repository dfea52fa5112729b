// SPDX-License-Identifier: Apache-2.0
// Jobs that compute and send over shared links. A transfer is modelled as a fluid: its bytes flow at the rate that
// `Rates` gives its job.
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
    Duration iteration{};  // mean, without the first iteration
    // By resource: time per iteration in which the resource limited this job's transfer.
    std::vector<Duration> limited;
};

// Simulates jobs that compute and send at the same time. A bucket of gradients is queued when it is ready, and sent
// after the earlier buckets of its job. workload::Training models the computation, as in the simulator.
//
// Ownership: borrows the workloads, which must outlive this object.
// Calling order: add() each job, then run() once.
class Timeline {
  public:
    // Rates of the active jobs, in bytes of gradients per second.
    using Rates = std::function<const std::vector<Share>&(const std::vector<bool>& active)>;

    // `latency`: time between the last byte of a bucket and its sum. `whole_buckets`: the server sends a
    // sum only when it has the whole bucket, so the transfer time of a bucket counts twice.
    void add(const workload::Workload& workload, Duration latency, bool whole_buckets);
    // Runs until each job has completed some iterations.
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
        std::deque<std::uint32_t> waiting;  // buckets; the first one is in transfer
        double left = 0;                    // bytes left of the first bucket
        Time begun{};                       // start of the transfer
        std::deque<Sum> sums;               // in flight
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
