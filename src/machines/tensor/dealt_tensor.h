// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "protocol/tensor.h"

namespace atp::tensor {

// Blocks of a tensor with an owner each, dealt in fragments of equal length: the first fragment of each block, then the
// second of each, and so on. Every uplink and every downlink then carries its share at all times
// (docs/spec/owners.md#dealt-tensors). A shorter block ends in fragments of zeros, which only occur if sizes differ.
//
// If blocks have spans, each span is cut by itself: a fragment has one scale. Zeros fill the last fragment of a span.
// Only in the memory of one host, a fragment that has room for several spans has them.
//
// In a reduce-scatter, all ranks load all blocks, and each block is stored by its owner. In an all-gather, each rank
// loads its own block, and stores all others.
//
// Ownership: owns the tensors of the blocks. Those of an all-gather are plain.
// Calling order: that of protocol::Tensor. Threads: as the tensors of the blocks. Failure: none.
class DealtTensor final : public protocol::Tensor {
  public:
    struct Block {
        std::unique_ptr<protocol::Tensor> tensor;
        std::uint16_t owner = 0;       // rank
        std::uint16_t member = owner;  // of the network that stands for it: the rank that speaks for its host
    };
    struct Rules {
        std::uint16_t rank = 0;
        bool gathers = false;       // an all-gather; otherwise a reduce-scatter
        std::uint64_t longest = 1;  // elements of a fragment, at most
        bool in_memory = false;     // all ranks share memory, where each cell of a fragment has its own scale
    };

    // Requires at least one block, and one that is not empty. All blocks have the same form and spans, from their
    // start.
    DealtTensor(std::vector<Block> blocks, const Rules& rules);

    [[nodiscard]] std::uint64_t size() const override { return rounds_ * round(); }
    [[nodiscard]] bool plain() const override { return blocks_.front().tensor->plain(); }
    [[nodiscard]] std::uint8_t form() const override { return blocks_.front().tensor->form(); }
    [[nodiscard]] protocol::Spans spans() const override { return {.length = fragment_, .offset = 0}; }
    [[nodiscard]] std::uint8_t scale(std::uint64_t first) const override;
    [[nodiscard]] protocol::Delivery delivery(std::uint64_t first) const override;
    [[nodiscard]] bool ready(std::uint64_t first, std::uint64_t count) const override;
    [[nodiscard]] bool load_integers(std::uint64_t first, std::span<std::byte> lanes) const override;
    void load_floats(std::uint64_t first, std::span<std::byte> lanes) const override;
    void store(std::uint64_t first, std::span<const std::byte> lanes) override;
    void store_narrow(std::uint64_t first, std::span<const std::byte> lanes) override;
    [[nodiscard]] protocol::NativeElements native() const override;
    void load_native(std::uint64_t first, std::span<std::byte> elements) const override;
    void store_native(std::uint64_t first, std::span<const std::byte> sums) override;
    [[nodiscard]] std::uint64_t cell() const override { return blocks_.front().tensor->cell(); }
    [[nodiscard]] std::uint8_t cell_scale(std::uint64_t first) const override;
    // Of elements of one cell.
    void settle(std::uint64_t first, std::uint64_t count, std::span<const float> largest) override;

  private:
    // Lanes after which the owners begin again.
    [[nodiscard]] std::uint64_t round() const { return blocks_.size() * fragment_; }
    [[nodiscard]] const Block& block_of(std::uint64_t first) const {
        return blocks_[first / fragment_ % blocks_.size()];
    }
    // Whether this rank reads, or writes, the memory of the block.
    [[nodiscard]] bool loads(const Block& block) const { return !rules_.gathers || block.owner == rules_.rank; }
    [[nodiscard]] bool stores(const Block& block) const { return (block.owner == rules_.rank) != rules_.gathers; }
    // Where in its block a lane lies, and where the part ends that its fragment has of the block.
    struct PlaceInBlock {
        std::uint64_t at = 0;
        std::uint64_t end = 0;  // at most `at`: the lane has no element
    };
    [[nodiscard]] PlaceInBlock place_in_block(std::uint64_t first) const;
    // Calls `call(block, first lane in the block, its lanes, all lanes)` for each fragment's part of the range. The
    // lanes behind `its lanes` are behind the end of the block.
    template <class Call>
    void visit(std::uint64_t first, std::uint64_t count, Call call) const;
    // Calls `load(tensor, first, bytes)` for what this rank has, and writes zeros elsewhere.
    template <class Load>
    void load(std::uint64_t first, std::span<std::byte> bytes, std::size_t unit, Load load) const;
    template <class Store>
    void store(std::uint64_t first, std::span<const std::byte> bytes, std::size_t unit, Store store);

    std::vector<Block> blocks_;
    Rules rules_;
    std::uint64_t rounds_ = 0;
    std::uint64_t fragment_ = 1;  // lanes
    std::uint64_t unit_ = 1;      // elements of a block that are cut by themselves: a span, or more
    std::uint64_t cuts_ = 1;      // fragments of a unit
};

}  // namespace atp::tensor
