// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "protocol/tensor.h"
#include "tensor/span_scales.h"
#include "tensor/span_votes.h"
#include "tensor/values.h"

namespace atp::tensor {

// How the numbers of an operation travelled from this rank. Values are counted in samples.
struct NumberTally {
    std::uint64_t fragments = 0;  // sent, repetitions included
    std::uint64_t floats = 0;     // of these, as float32
    std::uint64_t values = 0;     // that are not 0
    std::uint64_t vanished = 0;   // of these, those that are 0 at their scale
};

// A tensor of floats with a scale for each span (dynamic scaling), with narrow integers, or with both.
//
// The numbers of a packet have one scale, which the cells of a span share: the tensor multiplies the numbers of each
// cell by a power of two, and divides their sums by it. Ranks that share memory without a network use the scales of
// cells.
//
// A scale leaves room for the sums to grow before they overflow. In int32 lanes, the largest number keeps all bits of
// its float32. A number that is too large for its scale costs time and no precision: its fragment is sent as floats.
//
// Ownership: owns the wrapped tensor, which must not be plain; shares the scales and the votes.
// Calling order: that of protocol::Tensor. The destructor reports the tally.
// Threads: as the wrapped tensor. Failure: none.
class FittedTensor final : public protocol::Tensor {
  public:
    struct Numbers {
        std::uint8_t form = ATP_DTYPE_INT32;
        double job_scale = 1;
        std::shared_ptr<SpanScales> scales{};  // nullptr: the scale is fixed
        std::shared_ptr<SpanVotes> votes{};    // about these scales; nullptr: none is needed
        bool in_memory = false;                // the rank that adds a span decides its scale: vote(), decide()
        bool in_packets = true;                // false: all ranks share memory, where numbers have the scale of cells
        std::function<void(const NumberTally&)> report{};  // on the thread of the destructor; empty: none
    };

    FittedTensor(std::shared_ptr<protocol::Tensor> tensor, Numbers numbers)
        : tensor_(std::move(tensor)),
          numbers_(std::move(numbers)),
          span_(span_elements(numbers_.form)),
          cell_(numbers_.scales == nullptr ? ~std::uint64_t{0} : cell_elements(numbers_.form)) {}
    ~FittedTensor() override;
    FittedTensor(const FittedTensor&) = delete;
    FittedTensor& operator=(const FittedTensor&) = delete;

    [[nodiscard]] std::uint64_t size() const override { return tensor_->size(); }
    [[nodiscard]] bool ready(std::uint64_t first, std::uint64_t count) const override;
    [[nodiscard]] std::uint8_t form() const override { return numbers_.form; }
    [[nodiscard]] protocol::Spans spans() const override;
    [[nodiscard]] std::uint8_t scale(std::uint64_t first) const override;
    [[nodiscard]] bool load_integers(std::uint64_t first, std::span<std::byte> lanes) const override;
    void load_floats(std::uint64_t first, std::span<std::byte> lanes) const override;
    void store(std::uint64_t first, std::span<const std::byte> lanes) override;
    void store_narrow(std::uint64_t first, std::span<const std::byte> lanes) override;

    [[nodiscard]] protocol::NativeElements native() const override { return tensor_->native(); }
    void load_native(std::uint64_t first, std::span<std::byte> elements) const override;
    void store_native(std::uint64_t first, std::span<const std::byte> sums) override {
        tensor_->store_native(first, sums);
    }
    [[nodiscard]] std::uint64_t cell() const override { return numbers_.scales == nullptr ? 0 : cell_; }
    [[nodiscard]] std::uint8_t cell_scale(std::uint64_t first) const override;
    void settle(std::uint64_t first, std::uint64_t count, std::span<const float> largest) override;
    [[nodiscard]] std::uint32_t vote(std::uint64_t first) const override;
    void decide(std::uint64_t first, std::uint32_t votes) override;

  private:
    // Elements converted or looked at in one step.
    static constexpr std::size_t block = values_max;

    // True: the span has its scale.
    [[nodiscard]] bool decided(std::uint64_t span) const;
    // What a number is multiplied with before it is rounded.
    [[nodiscard]] float factor_of(std::uint8_t scale) const;
    // The numbers of some cells are smaller in packets than in the tensor (span_scales.h).
    [[nodiscard]] bool has_cells() const { return numbers_.scales != nullptr && numbers_.in_packets && cell_ < span_; }
    // Calls visit(first element, count) for the part of each cell. Ends with false when `visit` returns false.
    template <class Visit>
    bool visit_cells(std::uint64_t first, std::size_t count, const Visit& visit) const;
    void store_own(std::uint64_t first, std::span<const std::byte> lanes);
    void tally(std::uint64_t first, std::span<const float> values) const;

    std::shared_ptr<protocol::Tensor> tensor_;
    Numbers numbers_;
    std::uint64_t span_;  // elements
    std::uint64_t cell_;  // elements; without scales, all
    mutable std::atomic<std::uint64_t> fragments_{0};
    mutable std::atomic<std::uint64_t> floats_{0};
    mutable std::atomic<std::uint64_t> values_{0};
    mutable std::atomic<std::uint64_t> vanished_{0};
};

}  // namespace atp::tensor
