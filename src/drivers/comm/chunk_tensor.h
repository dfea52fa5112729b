// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "numeric/lanes32_worker.h"
#include "protocol/tensor.h"
#include "wire/format.h"

namespace atp::comm {

// The sums of one chunk in the memory of a host, and the place for its results, which replace them.
//
// Ownership: keeps `memory` alive.
// Calling order: that of protocol::Tensor. Threads: as the channel that carries it. Failure: none.
class ChunkTensor final : public protocol::Tensor {
  public:
    struct Lanes {
        std::byte* sums = nullptr;              // integers as a worker sends them; INT32_MIN is no number
        std::vector<const std::byte*> ranks{};  // float32 of each rank
        std::size_t count = 0;
        bool plain = false;
    };

    ChunkTensor(Lanes lanes, std::shared_ptr<const void> memory)
        : lanes_(std::move(lanes)), memory_(std::move(memory)) {}

    [[nodiscard]] std::uint64_t size() const override { return lanes_.count; }
    [[nodiscard]] bool plain() const override { return lanes_.plain; }
    [[nodiscard]] bool load_integers(std::uint64_t first, std::span<std::byte> lanes) const override {
        std::copy_n(lanes_.sums + first * ATP_LANE_BYTES, lanes.size(), lanes.data());
        return lanes_.plain || !numeric::exceeds(lanes.data(), lanes.size() / ATP_LANE_BYTES, INT32_MAX);
    }
    void load_floats(std::uint64_t first, std::span<std::byte> lanes) const override {
        load_floats_of(0, first, lanes);
    }
    [[nodiscard]] unsigned float_ranks() const override { return static_cast<unsigned>(lanes_.ranks.size()); }
    void load_floats_of(unsigned rank, std::uint64_t first, std::span<std::byte> lanes) const override {
        std::copy_n(lanes_.ranks[rank] + first * ATP_LANE_BYTES, lanes.size(), lanes.data());
    }
    void store(std::uint64_t first, std::span<const std::byte> lanes) override {
        std::ranges::copy(lanes, lanes_.sums + first * ATP_LANE_BYTES);
    }

  private:
    Lanes lanes_;
    std::shared_ptr<const void> memory_;
};

}  // namespace atp::comm
