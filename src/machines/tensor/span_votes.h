// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "protocol/tensor.h"
#include "tensor/span_scales.h"

namespace atp::tensor {

// What this rank thinks of the proposed scale of each span. The sum of the votes of all ranks decides. A rank whose own
// numbers are large enough knows the result before it has the sum, so it does not wait.
//
// Each span is read once, before any element of it is sent. Sums may replace the numbers while the vote still travels,
// and every copy of it must be the same (H56, docs/spec/hazards.md#h56).
//
// Ownership: shares the tensor that it reads, and its scales.
// Calling order: ready() or accepts() of a span until it returns true, then own().
// Threads: any. A lock lets one thread read the numbers. Failure: none.
class SpanVotes {
  public:
    // One lane counts both votes. At most 1,024 ranks have each.
    static constexpr std::uint32_t too_small = 1;
    static constexpr std::uint32_t large_enough = 1U << 16U;

    struct Rules {
        std::uint32_t ranks = 1;
        std::uint64_t span = span_elements(ATP_DTYPE_INT32);  // elements of each span but the last
    };

    SpanVotes(std::shared_ptr<const protocol::Tensor> whole, std::shared_ptr<SpanScales> scales, const Rules& rules);

    [[nodiscard]] std::uint64_t spans() const { return own_.size(); }
    // True: the numbers of the span can be read, and its proposal is known.
    [[nodiscard]] bool ready(std::uint64_t span) const;
    // The vote of this rank about its finite numbers: too_small, large_enough, or 0 if they are all 0.
    [[nodiscard]] std::uint32_t own(std::uint64_t span);
    // Decides for the proposal if the own vote alone does. False: the sum of the votes decides, or ready() is false.
    [[nodiscard]] bool accepts(std::uint64_t span);
    // Decides by the sum of the votes of all ranks.
    void decide(std::uint64_t span, std::uint32_t sum);

  private:
    [[nodiscard]] std::uint32_t read(std::uint64_t span) const;

    std::shared_ptr<const protocol::Tensor> whole_;
    std::shared_ptr<SpanScales> scales_;
    Rules rules_;
    std::mutex reading_;
    std::vector<std::atomic<std::uint32_t>> own_;  // `unread` at first
};

}  // namespace atp::tensor
