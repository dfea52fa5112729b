// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "protocol/tensor.h"
#include "sim/scenario.h"
#include "workload/training.h"

namespace atp::sim {

// What the workers of a job sum in one incarnation, and whether the sums are right. A worker stands for one rank, or
// for all ranks of its host.
//
// Ownership: owns the tensors, each until forget() or until its worker begins the next iteration.
// Calling order: begin() for each bucket of an iteration, in order; finish() for each part. After either, poll_part()
//   and poll_summed() until they return nothing; objection() to what poll_summed() returned.
// Threads: none. Failure: none.
class JobTensors {
  public:
    struct Part {
        unsigned channel = 0;
        std::uint64_t number = 0;  // for finish()
        protocol::Tensor* tensor = nullptr;
    };

    explicit JobTensors(unsigned workers) : workers_(workers) {}
    virtual ~JobTensors() = default;

    virtual void begin(unsigned worker, unsigned iteration, std::uint32_t bucket) = 0;
    // To be summed. All workers have the parts of a channel in one order.
    [[nodiscard]] std::optional<Part> poll_part(unsigned worker) { return take(workers_[worker].parts); }
    // The part has its sums.
    virtual void finish(unsigned worker, std::uint64_t number);
    // A bucket that has all sums.
    [[nodiscard]] std::optional<std::uint32_t> poll_summed(unsigned worker) { return take(workers_[worker].summed); }
    // What is wrong with these; empty: nothing.
    [[nodiscard]] virtual std::string objection(unsigned worker, std::uint32_t bucket) = 0;
    // The processes of the worker have ended.
    virtual void forget(unsigned worker) = 0;
    // Of what the worker has begun in this iteration, 0 to 1; an estimate.
    [[nodiscard]] virtual double share_summed(unsigned worker) const = 0;
    // True once after a part of the worker became ready because of a sum that another part has.
    [[nodiscard]] virtual bool take_progress(unsigned /*worker*/) { return false; }

  protected:
    void add_part(unsigned worker, const Part& part) { workers_[worker].parts.push_back(part); }
    // Its number is that of the bucket, which has all sums when each of its parts has them.
    void add_part_of(std::uint32_t bucket, unsigned worker, unsigned channel, protocol::Tensor& tensor);
    void note_summed(unsigned worker, std::uint32_t bucket) { workers_[worker].summed.push_back(bucket); }

  private:
    struct Worker {
        std::deque<Part> parts{};
        std::map<std::uint32_t, unsigned> open{};  // by bucket: parts without sums
        std::deque<std::uint32_t> summed{};
    };

    template <class T>
    [[nodiscard]] static std::optional<T> take(std::deque<T>& queue) {
        if (queue.empty()) return std::nullopt;
        const T first = queue.front();
        queue.pop_front();
        return first;
    }

    std::vector<Worker> workers_;
};

struct TensorsOf {
    std::uint64_t key = 0;  // from the seed, the job and its incarnation
    unsigned workers = 1;
    unsigned channels = 1;
    const workload::Workload& workload;
};
// Of the kind that the scenario asks for: synthetic gradients, which need no memory, or numbers in memory with the
// scaling and the lanes of the product.
[[nodiscard]] std::unique_ptr<JobTensors> make_tensors(const Scenario& scenario, const TensorsOf& of);

}  // namespace atp::sim
