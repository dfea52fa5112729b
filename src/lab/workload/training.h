// SPDX-License-Identifier: Apache-2.0
// Timing of the ranks of a job between sums. During the backward pass gradients become ready from the last layer to the
// first. The next forward pass computes layer by layer, each as soon as its sums are available.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"

namespace atp::workload {

// One iteration of each rank: a backward pass, whose gradients are summed in buckets, and the next forward pass.
struct Workload {
    struct Bucket {
        std::uint64_t elements = 0;  // float32
        Duration ready{};            // since the start of the backward pass; increasing
    };
    struct Stage {
        Duration compute{};
        std::uint32_t first = 0;  // requires buckets first .. last - 1
        std::uint32_t last = 0;
    };
    std::vector<Bucket> buckets;
    std::vector<Stage> forward;

    [[nodiscard]] std::uint64_t elements() const;
    [[nodiscard]] Duration compute() const;  // time of an iteration that never waits for a sum
};

// State of all ranks of one job. The last forward pass of a job is not computed, because no result depends on it.
//
// Ownership: owns its state. Borrows the workload.
// Calling order: begin() for each rank; advance() at due(), which returns the buckets to be summed; summed() for each
//   of them.
class Training {
  public:
    Training(const Workload& workload, unsigned ranks, unsigned iterations);

    // Starts the backward pass of the rank's next iteration at `when`. The previous state of the rank does not matter.
    void begin(unsigned rank, unsigned iterations_done, Time when);

    struct Buckets {
        std::uint32_t first = 0;
        std::uint32_t last = 0;
    };
    // Buckets that became ready since the last call. No effect before due().
    Buckets advance(unsigned rank, Time now);
    void summed(unsigned rank, std::uint32_t bucket, Time now);

    [[nodiscard]] Time due(unsigned rank) const { return ranks_[rank].due; }
    [[nodiscard]] unsigned iterations_done(unsigned rank) const { return ranks_[rank].done; }
    [[nodiscard]] bool finished(unsigned rank) const { return ranks_[rank].done == iterations_; }
    [[nodiscard]] bool all_finished() const;
    [[nodiscard]] bool waits_for_sums(unsigned rank) const { return ranks_[rank].summed_count < ranks_[rank].appeared; }
    // first_end(): time at which all ranks had ended the first iteration. last_end(): the same for the latest
    // iteration.
    [[nodiscard]] Time first_end() const { return first_end_; }
    [[nodiscard]] Time last_end() const { return last_end_; }

  private:
    struct Rank {
        unsigned done = 0;           // iterations
        bool forward = false;        // in the forward pass
        bool computing = false;      // computing a stage of the forward pass
        std::uint32_t stage = 0;     // of the forward pass
        std::uint32_t appeared = 0;  // buckets of this iteration that are ready
        std::uint32_t summed_count = 0;
        std::vector<bool> summed;
        Time begun{};  // start of the backward pass
        Time due = never;
    };

    void begin_backward(Rank& rank, Time now);
    void try_stage(Rank& rank, Time now);
    void end_iteration(Rank& rank, Time now);

    const Workload& workload_;
    unsigned iterations_;
    std::vector<Rank> ranks_;
    Time first_end_{};
    Time last_end_{};
};

}  // namespace atp::workload
