// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "protocol/tensor.h"

namespace atp::tensor {

// The sums of one chunk in the memory of a host, and the place for its results, which replace them. The form and the
// scales are those of the whole tensor.
//
// Ownership: keeps alive what `keeps` owns: the memory and the whole tensor. Otherwise borrows both.
// Calling order: that of protocol::Tensor. Threads: as the channel that carries it. Failure: none.
class ChunkTensor final : public protocol::Tensor {
  public:
    struct ChunkSums {
        std::byte* sums = nullptr;              // int32, as a worker sends them; INT32_MIN is no number
        std::vector<const std::byte*> ranks{};  // float32 of each rank
        std::uint64_t first = 0;                // element of the whole tensor
        std::size_t count = 0;
        double job_scale = 1;
        std::shared_ptr<const void> keeps{};
    };

    ChunkTensor(const protocol::Tensor& whole, ChunkSums chunk) : whole_(whole), chunk_(std::move(chunk)) {}

    [[nodiscard]] std::uint64_t size() const override { return chunk_.count; }
    [[nodiscard]] bool plain() const override { return whole_.plain(); }
    [[nodiscard]] std::uint16_t purpose() const override { return whole_.purpose(); }
    [[nodiscard]] std::uint8_t form() const override { return whole_.form(); }
    [[nodiscard]] protocol::Spans spans() const override;
    [[nodiscard]] std::uint8_t scale(std::uint64_t first) const override { return whole_.scale(chunk_.first + first); }
    [[nodiscard]] bool floats_only() const override { return whole_.floats_only(); }
    [[nodiscard]] protocol::Delivery delivery(std::uint64_t first) const override {
        return whole_.delivery(chunk_.first + first);
    }
    [[nodiscard]] bool load_integers(std::uint64_t first, std::span<std::byte> lanes) const override;
    void load_floats(std::uint64_t first, std::span<std::byte> lanes) const override {
        load_floats_of(0, first, lanes);
    }
    [[nodiscard]] unsigned float_ranks() const override { return static_cast<unsigned>(chunk_.ranks.size()); }
    void load_floats_of(unsigned rank, std::uint64_t first, std::span<std::byte> lanes) const override;
    void store(std::uint64_t first, std::span<const std::byte> lanes) override;
    void store_narrow(std::uint64_t first, std::span<const std::byte> lanes) override;
    void note_demand() const override { whole_.note_demand(); }

  private:
    const protocol::Tensor& whole_;
    ChunkSums chunk_;
};

}  // namespace atp::tensor
