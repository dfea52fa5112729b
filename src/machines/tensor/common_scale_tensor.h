// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "numeric/element_type.h"
#include "protocol/tensor.h"
#include "tensor/exponent_source.h"
#include "tensor/span_scales.h"
#include "tensor/span_votes.h"

namespace atp::tensor {

// A tensor of floats with one scale for all of its elements. Two kinds of tensors have it:
//
//   with owners: they alone know the sums of their parts. So the scale follows from the largest number of any rank, in
//                this operation or in its reference.
//   of few elements: protocol::exact_scale. They travel as float32 and their sums are exact, so they need neither a
//                scale that suits them nor a vote about it.
//
// Ownership: owns the wrapped tensor, which must not be plain; shares the scale, the votes and the exponent.
// Calling order: that of protocol::Tensor. Nothing is ready before the scale is decided.
// Threads: as the wrapped tensor. Failure: none.
class CommonScaleTensor final : public protocol::Tensor {
  public:
    struct Follows {
        std::shared_ptr<SpanVotes> votes;        // about the scale
        std::shared_ptr<SeenExponent> exponent;  // of this operation, for the next one
    };

    // `scale`: of one span, without a reference.
    CommonScaleTensor(std::shared_ptr<protocol::Tensor> tensor, std::shared_ptr<SpanScales> scale)
        : CommonScaleTensor(std::move(tensor), std::move(scale), Follows()) {}
    // With a reference.
    CommonScaleTensor(std::shared_ptr<protocol::Tensor> tensor, std::shared_ptr<SpanScales> scale, Follows follows)
        : tensor_(std::move(tensor)), scale_(std::move(scale)), follows_(std::move(follows)) {}
    ~CommonScaleTensor() override { scale_->forget_reference(); }
    CommonScaleTensor(const CommonScaleTensor&) = delete;
    CommonScaleTensor& operator=(const CommonScaleTensor&) = delete;

    [[nodiscard]] std::uint64_t size() const override { return tensor_->size(); }
    [[nodiscard]] bool ready(std::uint64_t first, std::uint64_t count) const override {
        return tensor_->ready(first, count) && decided();
    }
    [[nodiscard]] protocol::Spans spans() const override { return tensor_->spans(); }
    [[nodiscard]] std::uint8_t scale(std::uint64_t /*first*/) const override { return scale_->scale(0); }
    [[nodiscard]] bool floats_only() const override {
        return follows_.votes == nullptr && scale(0) == protocol::exact_scale;
    }
    [[nodiscard]] protocol::Delivery delivery(std::uint64_t first) const override { return tensor_->delivery(first); }
    [[nodiscard]] bool load_integers(std::uint64_t first, std::span<std::byte> lanes) const override;
    void load_floats(std::uint64_t first, std::span<std::byte> lanes) const override {
        see(first, lanes.size() / ATP_LANE_BYTES);
        tensor_->load_floats(first, lanes);
    }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override { tensor_->store(first, lanes); }

    [[nodiscard]] protocol::NativeElements native() const override { return tensor_->native(); }
    void load_native(std::uint64_t first, std::span<std::byte> elements) const override {
        tensor_->load_native(first, elements);
        see(first, elements.size() / numeric::bytes_of(native().type));
    }
    void store_native(std::uint64_t first, std::span<const std::byte> sums) override {
        tensor_->store_native(first, sums);
    }

  private:
    [[nodiscard]] bool decided() const;
    void see(std::uint64_t first, std::uint64_t count) const {
        if (follows_.exponent != nullptr) follows_.exponent->see(first, count);
    }

    std::shared_ptr<protocol::Tensor> tensor_;
    std::shared_ptr<SpanScales> scale_;
    Follows follows_;
};

}  // namespace atp::tensor
