// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "protocol/tensor.h"
#include "sim/scenario.h"
#include "workload/training.h"

namespace atp::sim {

// What the ranks of a job sum in one incarnation, and whether the sums are right.
//
// Ownership: owns the tensors, each until forget() or until its rank begins the next iteration.
// Calling order: begin() for each bucket of an iteration, in order. objection() when all parts of a bucket are summed.
// Threads: none. Failure: none.
class JobTensors {
  public:
    using Submit = std::function<void(unsigned channel, protocol::Tensor& part)>;

    virtual ~JobTensors() = default;

    // Passes the parts of the sum to `submit`, in an order that is equal on all ranks.
    virtual void begin(unsigned rank, unsigned iteration, std::uint32_t bucket, const Submit& submit) = 0;
    // What is wrong with the sums; empty: nothing.
    [[nodiscard]] virtual std::string objection(unsigned rank, std::uint32_t bucket) = 0;
    // The processes of the rank have ended.
    virtual void forget(unsigned rank) = 0;
    // Of what the rank has begun in this iteration, 0 to 1; an estimate.
    [[nodiscard]] virtual double share_summed(unsigned rank) const = 0;
    // True once after a part of the rank became ready because of a sum that another part has.
    [[nodiscard]] virtual bool take_progress(unsigned /*rank*/) { return false; }
};

struct TensorsOf {
    std::uint64_t key = 0;  // from the seed, the job and its incarnation
    unsigned ranks = 1;
    const workload::Workload& workload;
};
// Of the kind that the scenario asks for: synthetic gradients, which need no memory, or numbers in memory with the
// scaling and the lanes of the product.
[[nodiscard]] std::unique_ptr<JobTensors> make_tensors(const Scenario& scenario, const TensorsOf& of);

}  // namespace atp::sim
