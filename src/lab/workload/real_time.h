// SPDX-License-Identifier: Apache-2.0
// Training of one rank in real time: the rank sleeps while it computes, and its sums are those of a real system.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "workload/training.h"

namespace atp::workload {

// How a rank sums its buckets.
//
// Threads: start() and warm() run on the thread of train(). The calls that start() returned run on another thread, one
//   after the other, in the order of their buckets, and each of them runs even after an error.
// Failure: the first error ends the training.
struct TrainingCalls {
    using Wait = std::function<Result<void>()>;
    // Starts a sum and returns the call that waits for it. Where the operations of a system block, that call may run
    // the operation itself.
    std::function<Result<Wait>(std::uint32_t bucket, unsigned iteration)> start;
    std::function<void()> warm;  // the next iteration is the first one that is measured
};

struct IterationCounts {
    unsigned warmup = 1;  // at least 1: no forward pass precedes the first iteration
    unsigned measured = 1;
};

// Returns the seconds of each measured iteration, from the end of the sums of one iteration to those of the next.
[[nodiscard]] Result<std::vector<double>> train(const Workload& workload, const IterationCounts& counts,
                                                const TrainingCalls& calls);

}  // namespace atp::workload
