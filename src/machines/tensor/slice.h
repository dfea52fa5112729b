// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "protocol/tensor.h"

namespace atp::tensor {

// Elements of each slice but the last, if a tensor of `elements` is cut over channels: whole fragments of `fragment`
// elements, rounded up to a multiple of `alignment`. A tensor of fewer than 16 fragments stays whole.
[[nodiscard]] constexpr std::uint64_t length_of_slice(std::uint64_t elements, std::uint64_t fragment,
                                                      std::uint64_t channels, std::uint64_t alignment) {
    constexpr std::uint64_t least_fragments = 8;
    const std::uint64_t fragments = (elements + fragment - 1) / fragment;
    const std::uint64_t slices = std::clamp<std::uint64_t>(fragments / least_fragments, 1, channels);
    const std::uint64_t share = (fragments + slices - 1) / slices * fragment;
    return (share + alignment - 1) / alignment * alignment;
}

// The part of a tensor that one channel carries: `size` elements of `whole`, from element `first` on.
class Slice final : public protocol::Tensor {
  public:
    Slice(protocol::Tensor& whole, std::uint64_t first, std::uint64_t size, std::uint16_t purpose)
        : whole_(whole), first_(first), size_(size), purpose_(purpose) {}

    [[nodiscard]] std::uint64_t size() const override { return size_; }
    [[nodiscard]] bool plain() const override { return whole_.plain(); }
    [[nodiscard]] std::uint16_t purpose() const override { return purpose_; }
    [[nodiscard]] bool ready(std::uint64_t first, std::uint64_t count) const override {
        return whole_.ready(first_ + first, count);
    }
    [[nodiscard]] std::uint8_t form() const override { return whole_.form(); }
    [[nodiscard]] protocol::Spans spans() const override {
        const protocol::Spans whole = whole_.spans();
        if (whole.length == 0) return {};
        return {.length = whole.length, .offset = (whole.offset + first_) % whole.length};
    }
    [[nodiscard]] std::uint8_t scale(std::uint64_t first) const override { return whole_.scale(first_ + first); }
    [[nodiscard]] bool floats_only() const override { return whole_.floats_only(); }
    [[nodiscard]] protocol::Delivery delivery(std::uint64_t first) const override {
        return whole_.delivery(first_ + first);
    }
    [[nodiscard]] bool load_integers(std::uint64_t first, std::span<std::byte> lanes) const override {
        return whole_.load_integers(first_ + first, lanes);
    }
    void load_floats(std::uint64_t first, std::span<std::byte> lanes) const override {
        whole_.load_floats(first_ + first, lanes);
    }
    [[nodiscard]] unsigned float_ranks() const override { return whole_.float_ranks(); }
    void load_floats_of(unsigned rank, std::uint64_t first, std::span<std::byte> lanes) const override {
        whole_.load_floats_of(rank, first_ + first, lanes);
    }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override { whole_.store(first_ + first, lanes); }
    void store_narrow(std::uint64_t first, std::span<const std::byte> lanes) override {
        whole_.store_narrow(first_ + first, lanes);
    }

    void note_demand() const override { whole_.note_demand(); }

    // Only a slice of the whole tensor has them.
    [[nodiscard]] protocol::NativeElements native() const override {
        return size_ == whole_.size() ? whole_.native() : protocol::NativeElements{};
    }
    void load_native(std::uint64_t first, std::span<std::byte> elements) const override {
        whole_.load_native(first, elements);
    }
    void store_native(std::uint64_t first, std::span<const std::byte> sums) override {
        whole_.store_native(first, sums);
    }
    [[nodiscard]] std::uint64_t cell() const override { return whole_.cell(); }
    [[nodiscard]] std::uint8_t cell_scale(std::uint64_t first) const override {
        return whole_.cell_scale(first_ + first);
    }
    void settle(std::uint64_t first, std::uint64_t count, std::span<const float> largest) override {
        whole_.settle(first_ + first, count, largest);
    }
    [[nodiscard]] std::uint32_t vote(std::uint64_t first) const override { return whole_.vote(first_ + first); }
    void decide(std::uint64_t first, std::uint32_t votes) override { whole_.decide(first_ + first, votes); }
    [[nodiscard]] std::optional<std::uint32_t> sole_source() const override { return whole_.sole_source(); }

  private:
    protocol::Tensor& whole_;
    std::uint64_t first_;
    std::uint64_t size_;
    std::uint16_t purpose_;
};

}  // namespace atp::tensor
