// SPDX-License-Identifier: Apache-2.0
// Tensors of a sealed operation. All are plain: a plain fragment is never sent as floats, and its result is integers,
// so no switch can ask for less.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "protocol/tensor.h"
#include "tensor/operation_seal.h"

namespace atp::tensor {

// A tensor of which the seal sees all words that this rank sends, and all sums that it gets. Floats are sent as the
// integers that they have at their scale; NaN and infinities as 0, and after the sum they are told to the other ranks.
//
// Ownership: shares the wrapped tensor, which has the form int32, and the seal.
// Calling order: that of protocol::Tensor; store_extremes() after the check.
// Threads: as the wrapped tensor. Failure: none: the check of the seal tells it.
class SealedTensor final : public protocol::PlainTensor {
  public:
    struct Inner {
        std::shared_ptr<protocol::Tensor> tensor;
        // Gets what the floats are that have no integer; nullptr: `tensor` does.
        std::shared_ptr<protocol::Tensor> whole{};
        SealedWords words{};
        double job_scale = 1;
    };

    SealedTensor(Inner inner, std::shared_ptr<OperationSeal> seal)
        : inner_(std::move(inner)), seal_(std::move(seal)), first_word_(seal_->expect(inner_.tensor->size())) {}

    [[nodiscard]] std::uint64_t size() const override { return inner_.tensor->size(); }
    [[nodiscard]] bool ready(std::uint64_t first, std::uint64_t count) const override {
        return inner_.tensor->ready(first, count);
    }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override;
    void note_demand() const override {
        if (inner_.words.fits()) seal_->note_demand();
    }
    // The elements that are not finite on some rank are not finite in the sums.
    void store_extremes();

  protected:
    void load(std::uint64_t first, std::span<std::byte> lanes) const override;

  private:
    // Calls visit(first element, lanes) for parts of at most LinearCode::most_words words in one span.
    template <class Lanes, class Visit>
    void visit(std::uint64_t first, Lanes lanes, const Visit& visit) const;
    // Calls lack(element) for each element without an integer.
    template <class Lack>
    void load_part(std::uint64_t first, std::span<std::byte> lanes, const Lack& lack) const;
    void note_lack(std::uint64_t element);
    void store_all(std::uint64_t first, std::uint64_t end, float value);

    Inner inner_;
    std::shared_ptr<OperationSeal> seal_;
    std::uint64_t first_word_;
};

// A block of an all-gather. Only its owner sends words, and gets no copy of them, so to the seal it has got what it
// sent.
//
// Ownership: owns the wrapped tensor, which is plain; shares the seal.
// Calling order: note_own() once on the owner, after all blocks of the operation exist; otherwise that of
//   protocol::Tensor. Threads: as the wrapped tensor. Failure: none: the check of the seal tells it.
class SealedBlock final : public protocol::PlainTensor {
  public:
    SealedBlock(std::unique_ptr<protocol::Tensor> tensor, std::shared_ptr<OperationSeal> seal)
        : tensor_(std::move(tensor)), seal_(std::move(seal)), first_word_(seal_->expect(tensor_->size())) {}

    [[nodiscard]] std::uint64_t size() const override { return tensor_->size(); }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override;
    void note_own();

  protected:
    void load(std::uint64_t first, std::span<std::byte> lanes) const override {
        static_cast<void>(tensor_->load_integers(first, lanes));
    }

  private:
    // Of at most LinearCode::most_words words.
    void note(std::uint64_t first, std::span<const std::byte> sent, std::span<const std::byte> got);

    std::unique_ptr<protocol::Tensor> tensor_;
    std::shared_ptr<OperationSeal> seal_;
    std::uint64_t first_word_;
};

// The word of one rank: a block of a gather.
//
// Ownership: shares the seal. Calling order: that of protocol::Tensor. Threads: as the seal. Failure: none.
class SealWordTensor final : public protocol::PlainTensor {
  public:
    SealWordTensor(std::shared_ptr<OperationSeal> seal, std::uint32_t rank) : seal_(std::move(seal)), rank_(rank) {}

    static_assert(SealWord::sealed_bytes % ATP_LANE_BYTES == 0);
    [[nodiscard]] std::uint64_t size() const override { return SealWord::sealed_bytes / ATP_LANE_BYTES; }
    [[nodiscard]] bool ready(std::uint64_t /*first*/, std::uint64_t /*count*/) const override { return seal_->ready(); }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override {
        seal_->keep(rank_, first * ATP_LANE_BYTES, lanes);
    }

  protected:
    void load(std::uint64_t first, std::span<std::byte> lanes) const override;

  private:
    std::shared_ptr<OperationSeal> seal_;
    std::uint32_t rank_;
};

}  // namespace atp::tensor
