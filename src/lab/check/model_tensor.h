// SPDX-License-Identifier: Apache-2.0
// A worker's tensor in the model. Its elements come from Truth. Sums that the worker stores are checked at once, not
// kept.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "check/truth.h"
#include "numeric/lanes32_worker.h"
#include "numeric/narrow_lanes.h"
#include "protocol/tensor.h"

namespace atp::check {

class ModelTensor final : public protocol::Tensor {
  public:
    ModelTensor(const Truth& truth, bool earlier_incarnation, unsigned rank, std::int32_t first_offset,
                std::uint8_t fragments, std::uint16_t purpose = 1)
        : truth_(truth),
          earlier_incarnation_(earlier_incarnation),
          rank_(rank),
          first_offset_(first_offset),
          fragments_(fragments),
          purpose_(purpose) {}

    // Sets the destinations: a bit mask of delivered elements, and a description of the first violation.
    void assess_into(std::uint32_t* stored, std::string* violation) {
        stored_ = stored;
        violation_ = violation;
    }
    // The elements of this tensor whose sums this rank gets, as a mask of bits in `stored`.
    [[nodiscard]] std::uint32_t all_stored() const {
        std::uint32_t all = 0;
        for (std::int32_t offset = first_offset_; offset < first_offset_ + fragments_; ++offset) {
            const bool receives = truth_.delivery(offset).receives(static_cast<std::uint16_t>(rank_));
            const unsigned each = truth_.elements_each();
            all |= (receives ? (1U << each) - 1U : 0U) << (static_cast<unsigned>(offset) * each);
        }
        return all;
    }

    [[nodiscard]] std::uint64_t size() const override { return fragments_ * truth_.elements_each(); }
    [[nodiscard]] std::uint8_t form() const override { return truth_.form(); }
    [[nodiscard]] bool plain() const override { return truth_.plain(first_offset_); }
    [[nodiscard]] std::uint16_t purpose() const override { return purpose_; }
    [[nodiscard]] protocol::Delivery delivery(std::uint64_t first) const override {
        return truth_.delivery(offset_of(first));
    }
    [[nodiscard]] bool load_integers(std::uint64_t first, std::span<std::byte> lanes) const override {
        const std::array<float, 2> elements{value(first), value(first)};
        bool fit = true;
        for_each_word(lanes, [&](std::span<std::byte> word, std::uint64_t /*number*/) {
            fit = fit &&
                  (form() == ATP_DTYPE_INT16 ? numeric::int16_lanes().quantise(elements.data(), 2, 1.0F, word.data())
                                             : numeric::quantise(elements.data(), 1, 1.0F, word.data()));
        });
        return fit;
    }
    void load_floats(std::uint64_t first, std::span<std::byte> lanes) const override { fill(lanes, value(first)); }
    [[nodiscard]] unsigned float_ranks() const override { return truth_.ranks_each(); }
    void load_floats_of(unsigned rank, std::uint64_t first, std::span<std::byte> lanes) const override {
        fill(lanes, truth_.value_of_rank(earlier_incarnation_, rank_, offset_of(first), rank));
    }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override {
        if (violation_ == nullptr) return;
        const std::uint32_t requested = truth_.sum_bits(earlier_incarnation_, offset_of(first));
        for_each_word(lanes, [&](std::span<const std::byte> word, std::uint64_t number) {
            const std::uint64_t element =
                static_cast<unsigned>(first_offset_) * truth_.elements_each() + first + number;
            const std::uint32_t bit = 1U << element;
            if (violation_->empty() && wire::load_u32(word.data()) != requested)
                *violation_ = "a wrong sum was delivered";
            if (violation_->empty() && (*stored_ & bit) != 0) *violation_ = "a sum was delivered twice";
            *stored_ |= bit;
        });
    }
    void store_narrow(std::uint64_t first, std::span<const std::byte> lanes) override {
        std::array<std::byte, 2 * ATP_LANE_BYTES> floats;
        numeric::int16_lanes().to_floats(lanes.data(), 2, 1, floats.data());
        for (unsigned at = 0; at < 2; ++at) {
            store(first + at, std::span(floats).subspan(at * ATP_LANE_BYTES, ATP_LANE_BYTES));
        }
    }

  private:
    template <class Byte, class Visit>
    static void for_each_word(std::span<Byte> lanes, Visit&& visit) {
        for (std::size_t at = 0; at < lanes.size(); at += ATP_LANE_BYTES) {
            visit(lanes.subspan(at, ATP_LANE_BYTES), at / ATP_LANE_BYTES);
        }
    }
    static void fill(std::span<std::byte> lanes, float element) {
        for_each_word(lanes, [&](std::span<std::byte> word, std::uint64_t /*number*/) {
            wire::store_u32(word.data(), std::bit_cast<std::uint32_t>(element));
        });
    }
    [[nodiscard]] std::int32_t offset_of(std::uint64_t element) const {
        return first_offset_ + static_cast<std::int32_t>(element / truth_.elements_each());
    }
    [[nodiscard]] float value(std::uint64_t element) const {
        return truth_.value(earlier_incarnation_, rank_, offset_of(element));
    }

    const Truth& truth_;
    bool earlier_incarnation_;
    unsigned rank_;
    std::int32_t first_offset_;
    std::uint8_t fragments_;
    std::uint16_t purpose_;
    std::uint32_t* stored_ = nullptr;
    std::string* violation_ = nullptr;
};

// The tensors of a worker, and what it stored.
struct WorkerTensors {
    std::vector<std::unique_ptr<ModelTensor>> owned;
    std::vector<protocol::Tensor*> tensors;  // pointers to `owned`: archives store a tensor as its index here
    std::uint32_t stored = 0;                // ghost: bit mask of elements whose sum was delivered

    // Adds the tensors of `configuration`. `first_offset`: offset of the first fragment of the first tensor.
    void add_tensors(const Configuration& configuration, const Truth& truth, bool earlier, unsigned rank,
                     std::int32_t first_offset, std::uint16_t purpose = 1) {
        for (const std::uint8_t fragments : configuration.tensors) {
            owned.push_back(std::make_unique<ModelTensor>(truth, earlier, rank, first_offset, fragments, purpose));
            tensors.push_back(owned.back().get());
            first_offset += fragments;
        }
    }
};

// While this object exists, the tensors of a worker check the sums that the worker stores.
class CheckedStores {
  public:
    CheckedStores(std::vector<std::unique_ptr<ModelTensor>>& tensors, std::uint32_t& stored, std::string& violation)
        : tensors_(tensors) {
        for (auto& tensor : tensors_) tensor->assess_into(&stored, &violation);
    }
    ~CheckedStores() {
        for (auto& tensor : tensors_) tensor->assess_into(nullptr, nullptr);
    }
    CheckedStores(const CheckedStores&) = delete;
    CheckedStores& operator=(const CheckedStores&) = delete;

  private:
    std::vector<std::unique_ptr<ModelTensor>>& tensors_;
};

}  // namespace atp::check
