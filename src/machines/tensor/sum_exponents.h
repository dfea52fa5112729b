// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "protocol/tensor.h"
#include "tensor/span_scales.h"

namespace atp::tensor {

// Tells the ranks that lack the sums of a block how large they are: a byte for the exponent of each cell, four in each
// plain lane. Scales of later operations then are equal on all ranks. The rank that has the sums loads the lanes, all
// others store them.
//
// Ownership: shares the scales.
// Calling order: that of protocol::Tensor. Lanes are ready when the sums of their spans are recorded.
// Threads: as the scales. Failure: none.
class SumExponents final : public protocol::PlainTensor {
  public:
    explicit SumExponents(std::shared_ptr<SpanScales> scales) : scales_(std::move(scales)) {}

    [[nodiscard]] std::uint64_t size() const override { return (scales_->cells() + cells_of_lane - 1) / cells_of_lane; }
    [[nodiscard]] bool ready(std::uint64_t first, std::uint64_t count) const override;
    void store(std::uint64_t first, std::span<const std::byte> lanes) override;

  protected:
    void load(std::uint64_t first, std::span<std::byte> lanes) const override;

  private:
    static constexpr std::uint64_t cells_of_lane = ATP_LANE_BYTES;

    std::shared_ptr<SpanScales> scales_;
};

}  // namespace atp::tensor
