// SPDX-License-Identifier: Apache-2.0
// What the ranks of a job do between two sums: gradients appear back to front while the backward pass runs, and the
// next forward pass goes from layer to layer as far as their sums are there.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"

namespace atp::workload {

// One iteration of each rank: a backward pass, whose gradients are summed in buckets, and the forward pass of the next.
struct Workload {
    struct Bucket {
        std::uint64_t elements = 0;  // float32
        Duration ready{};            // after the backward pass began; rising
    };
    struct Stage {
        Duration compute{};
        std::uint32_t first = 0;  // needs the buckets first .. last - 1
        std::uint32_t last = 0;
    };
    std::vector<Bucket> buckets;
    std::vector<Stage> forward;

    [[nodiscard]] std::uint64_t elements() const;
    [[nodiscard]] Duration compute() const;  // of an iteration whose sums take no time
};

// Calling order: begin() each rank; advance() when its due() comes, which says which buckets are to be summed; summed()
// for each of them. Owns its state, borrows the workload. One iteration's last forward pass is not computed: nobody
// waits for it.
class Training {
  public:
    Training(const Workload& workload, unsigned ranks, unsigned iterations);

    // The rank (again) starts the backward pass of its next iteration at that time, whatever it did before.
    void begin(unsigned rank, unsigned iterations_done, Time when);

    struct Buckets {
        std::uint32_t first = 0;
        std::uint32_t last = 0;
    };
    // Those that appeared since it was asked last. Without effect before due().
    Buckets advance(unsigned rank, Time now);
    void summed(unsigned rank, std::uint32_t bucket, Time now);

    [[nodiscard]] Time due(unsigned rank) const { return ranks_[rank].due; }
    [[nodiscard]] unsigned iterations_done(unsigned rank) const { return ranks_[rank].done; }
    [[nodiscard]] bool finished(unsigned rank) const { return ranks_[rank].done == iterations_; }
    [[nodiscard]] bool all_finished() const;
    [[nodiscard]] bool waits_for_sums(unsigned rank) const { return ranks_[rank].summed_count < ranks_[rank].appeared; }
    // Where the last rank ended its first iteration, and its last one until now.
    [[nodiscard]] Time first_end() const { return first_end_; }
    [[nodiscard]] Time last_end() const { return last_end_; }

  private:
    struct Rank {
        unsigned done = 0;           // iterations
        bool forward = false;        // the pass that runs
        bool computing = false;      // a stage of the forward pass
        std::uint32_t stage = 0;     // of it
        std::uint32_t appeared = 0;  // buckets of the iteration,
        std::uint32_t summed_count = 0;
        std::vector<bool> summed;
        Time begun{};  // the backward pass
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
