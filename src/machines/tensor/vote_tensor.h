// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "protocol/tensor.h"
#include "tensor/span_votes.h"

namespace atp::tensor {

// Lets the ranks decide whether the scale of each span suits the numbers that they have now: a plain lane for each
// span. If some numbers are not 0, and those of all ranks round badly, the span is summed exactly (H52,
// docs/spec/hazards.md#h52).
//
// Ownership: shares the votes.
// Calling order: that of protocol::Tensor. Each store() decides the spans of its lanes.
// Threads: one. Failure: none.
class VoteTensor final : public protocol::PlainTensor {
  public:
    explicit VoteTensor(std::shared_ptr<SpanVotes> votes) : votes_(std::move(votes)) {}

    [[nodiscard]] std::uint64_t size() const override { return votes_->spans(); }
    [[nodiscard]] bool ready(std::uint64_t first, std::uint64_t count) const override;
    void store(std::uint64_t first, std::span<const std::byte> lanes) override;

  protected:
    void load(std::uint64_t first, std::span<std::byte> lanes) const override;

  private:
    std::shared_ptr<SpanVotes> votes_;
};

}  // namespace atp::tensor
