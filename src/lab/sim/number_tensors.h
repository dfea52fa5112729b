// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "protocol/waker.h"
#include "sim/job_tensors.h"
#include "tensor/number_fitter.h"
#include "tensor/slice.h"

namespace atp::sim {

// float32 in memory, in the tensors of the product: their scale is fixed or follows from earlier sums, and their
// integers are int32, int16 or int8. Magnitudes differ between iterations, ranks, spans and elements.
//
// A sum is judged by its definition (docs/spec/numbers.md#result): the scales are those that the ranks report, which
// must be equal on all of them and fine enough for the numbers of some rank (H52, docs/spec/hazards.md#h52). With these
// scales, each bit of each sum is known.
//
// Ownership, calling order, threads, failure: as JobTensors.
class NumberTensors final : public JobTensors {
  public:
    NumberTensors(const Scenario& scenario, const TensorsOf& of);

    void begin(unsigned rank, unsigned iteration, std::uint32_t bucket) override;
    [[nodiscard]] std::string objection(unsigned rank, std::uint32_t bucket) override;
    void forget(unsigned rank) override { ranks_[rank].calls.clear(); }
    [[nodiscard]] double share_summed(unsigned rank) const override;
    [[nodiscard]] bool take_progress(unsigned rank) override { return std::exchange(ranks_[rank].feed->moved, false); }

  private:
    struct Feed final : protocol::Waker {
        void advance() override { moved = true; }
        void fail(const Error& /*error*/) override {}
        bool moved = false;
    };
    struct Call {
        unsigned iteration = 0;
        std::vector<float> numbers{};  // of the rank; then the sums
        tensor::NumberFitter::Fitted fitted{};
        std::deque<tensor::Slice> parts{};
        bool summed = false;
    };
    struct Rank {
        std::shared_ptr<Feed> feed;
        tensor::NumberFitter fitter;
        std::deque<Call> calls{};  // of the iteration, by bucket
        unsigned next_channel = 0;
    };
    // A rank that has a sum of the next iteration knows that all ranks have judged that of this one.
    struct Truth {
        unsigned iteration = 0;
        std::vector<std::uint8_t> scales{};  // by cell
        std::vector<std::uint32_t> sums{};   // bits
        std::string objection{};
    };

    void add_parts(unsigned rank, Call& call, std::uint32_t bucket);
    [[nodiscard]] float number(unsigned rank, unsigned iteration, std::uint32_t bucket, std::uint64_t element) const;
    [[nodiscard]] Truth truth_of(const Call& call, std::uint32_t bucket, std::vector<std::uint8_t> scales) const;
    [[nodiscard]] std::string objection_to_scales(const Truth& truth, std::uint32_t bucket,
                                                  const tensor::SpanScales& scales) const;
    [[nodiscard]] std::uint32_t sum_of(unsigned iteration, std::uint32_t bucket, std::uint64_t element,
                                       std::uint8_t scale) const;

    const Scenario& scenario_;
    std::uint64_t key_;
    unsigned channels_;
    const workload::Workload& workload_;
    std::deque<Rank> ranks_;
    std::vector<Truth> truths_;  // by bucket; no sums: not known yet
};

}  // namespace atp::sim
