// SPDX-License-Identifier: Apache-2.0
// Ring all-reduce, as in Horovod. A bucket is cut into one chunk per rank. Each chunk passes the ring once to be
// summed, and once more to distribute the sum. Every link therefore carries 2 (N - 1) / N of the bytes.
//
// Not modelled: time for additions beyond the time for copying (sim/scenario.h), and Horovod's negotiation of an order.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/systems/flow_job.h"

namespace atp::sim {

class Ring final : public FlowJob {
  public:
    Ring(const Shared& shared, ProgramId id, unsigned index);

  private:
    // State of one rank for one bucket.
    struct Turn {
        bool ready = false;          // this rank's own gradients are ready
        std::uint32_t received = 0;  // steps
        std::vector<Message> early;  // received before this rank's own gradients were ready
    };

    void submit(unsigned rank, workload::Training::Buckets buckets, Time now) override;
    void on_message(std::uint32_t flow, const Message& message, Time now) override;
    void take(unsigned rank, const Message& message, Time now);
    void pass_on(unsigned rank, std::uint32_t bucket, std::uint32_t step, std::uint64_t word, Time now);
    [[nodiscard]] std::uint32_t steps() const { return 2 * (ranks() - 1); }
    // The chunk that a rank sends in a step.
    [[nodiscard]] unsigned chunk_of(unsigned rank, std::uint32_t step) const {
        return (rank + 2 * ranks() - step) % ranks();
    }
    [[nodiscard]] unsigned next(unsigned rank) const { return (rank + 1) % ranks(); }

    std::vector<std::vector<Turn>> turns_;  // by rank and bucket
};

}  // namespace atp::sim
