// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "comm/work.h"
#include "protocol/tensor.h"

namespace atp::comm {

// The sums of one chunk in the memory of a host, and the place for its results, which replace them. The form and the
// scales are those of the whole tensor.
//
// Ownership: keeps the memory and the operation of the chunk alive.
// Calling order: that of protocol::Tensor. Threads: as the channel that carries it. Failure: none.
class ChunkTensor final : public protocol::Tensor {
  public:
    struct ChunkSums {
        std::byte* sums = nullptr;              // int32, as a worker sends them; INT32_MIN is no number
        std::vector<const std::byte*> ranks{};  // float32 of each rank
        std::uint64_t first = 0;                // element of the whole tensor
        std::size_t count = 0;
        double job_scale = 1;
        Handle operation{};
        std::shared_ptr<const void> memory{};
    };

    explicit ChunkTensor(ChunkSums chunk) : chunk_(std::move(chunk)), whole_(chunk_.operation->slices().front()) {}

    [[nodiscard]] std::uint64_t size() const override { return chunk_.count; }
    [[nodiscard]] bool plain() const override { return whole_.plain(); }
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

  private:
    ChunkSums chunk_;
    const tensor::Slice& whole_;
};

}  // namespace atp::comm
