// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "protocol/tensor.h"
#include "tensor/span_scales.h"

namespace atp::tensor {

// Lets the ranks decide whether the scale of each span suits the numbers that they have now: a plain lane for each
// span. If some numbers are not 0, and those of all ranks round badly, the span is summed exactly (H50,
// docs/protocol.md#h50).
//
// Ownership: shares the tensor that it reads, and its scales.
// Calling order: that of protocol::Tensor. Each store() decides the spans of its lanes.
// Threads: one. Failure: none.
class VoteTensor final : public protocol::PlainTensor {
  public:
    VoteTensor(std::shared_ptr<const protocol::Tensor> whole, std::shared_ptr<SpanScales> scales, std::uint32_t ranks,
               std::uint8_t form)
        : whole_(std::move(whole)), scales_(std::move(scales)), ranks_(ranks), form_(form) {}

    [[nodiscard]] std::uint64_t size() const override { return spans_of(whole_->size()); }
    [[nodiscard]] bool ready(std::uint64_t first, std::uint64_t count) const override;
    void store(std::uint64_t first, std::span<const std::byte> lanes) override;

  protected:
    void load(std::uint64_t first, std::span<std::byte> lanes) const override;

  private:
    [[nodiscard]] std::uint32_t vote(std::uint64_t span) const;

    std::shared_ptr<const protocol::Tensor> whole_;
    std::shared_ptr<SpanScales> scales_;
    std::uint32_t ranks_;
    std::uint8_t form_;
};

}  // namespace atp::tensor
