// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "protocol/tensor.h"

namespace atp::tensor {

// A tensor of few floats at protocol::exact_scale. They are sent as float32 and their sums are exact, so they need
// neither a scale that suits them nor a vote about it.
//
// Ownership: owns the wrapped tensor, which must not be plain.
// Calling order: that of protocol::Tensor. Threads: as the wrapped tensor. Failure: none.
class ExactTensor final : public protocol::Tensor {
  public:
    explicit ExactTensor(std::shared_ptr<protocol::Tensor> tensor) : tensor_(std::move(tensor)) {}

    [[nodiscard]] std::uint64_t size() const override { return tensor_->size(); }
    [[nodiscard]] bool ready(std::uint64_t first, std::uint64_t count) const override {
        return tensor_->ready(first, count);
    }
    [[nodiscard]] protocol::Spans spans() const override { return tensor_->spans(); }
    [[nodiscard]] std::uint8_t scale(std::uint64_t /*first*/) const override { return protocol::exact_scale; }
    [[nodiscard]] bool floats_only() const override { return true; }
    [[nodiscard]] protocol::Delivery delivery(std::uint64_t first) const override { return tensor_->delivery(first); }
    [[nodiscard]] bool load_integers(std::uint64_t /*first*/, std::span<std::byte> /*lanes*/) const override {
        return false;
    }
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
};

}  // namespace atp::tensor
