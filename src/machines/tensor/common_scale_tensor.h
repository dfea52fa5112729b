// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "protocol/tensor.h"
#include "tensor/span_scales.h"

namespace atp::tensor {

// A tensor of floats with one scale for all of its elements, which follows from their largest magnitude on all ranks.
// Parts of a tensor may have owners, who alone know the sums: such a tensor has no reference that all ranks share.
//
// Ownership: owns the wrapped tensor, which must not be plain; shares the scale.
// Calling order: that of protocol::Tensor. Nothing is ready before begin() of the scale.
// Threads: as the wrapped tensor. Failure: none.
class CommonScaleTensor final : public protocol::Tensor {
  public:
    // `scale`: of one element, without a reference.
    CommonScaleTensor(std::shared_ptr<protocol::Tensor> tensor, std::shared_ptr<SpanScales> scale)
        : tensor_(std::move(tensor)), scale_(std::move(scale)) {}

    [[nodiscard]] std::uint64_t size() const override { return tensor_->size(); }
    [[nodiscard]] bool ready(std::uint64_t first, std::uint64_t count) const override {
        return tensor_->ready(first, count) && scale_->ready(0);
    }
    [[nodiscard]] protocol::Spans spans() const override { return tensor_->spans(); }
    [[nodiscard]] std::uint8_t scale(std::uint64_t /*first*/) const override { return scale_->proposal(0); }
    [[nodiscard]] protocol::Delivery delivery(std::uint64_t first) const override { return tensor_->delivery(first); }
    [[nodiscard]] bool load_integers(std::uint64_t first, std::span<std::byte> lanes) const override;
    void load_floats(std::uint64_t first, std::span<std::byte> lanes) const override {
        tensor_->load_floats(first, lanes);
    }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override { tensor_->store(first, lanes); }

    [[nodiscard]] protocol::NativeElements native() const override { return tensor_->native(); }
    void load_native(std::uint64_t first, std::span<std::byte> elements) const override {
        tensor_->load_native(first, elements);
    }
    void store_native(std::uint64_t first, std::span<const std::byte> sums) override {
        tensor_->store_native(first, sums);
    }

  private:
    std::shared_ptr<protocol::Tensor> tensor_;
    std::shared_ptr<SpanScales> scale_;
};

}  // namespace atp::tensor
