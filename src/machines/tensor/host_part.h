// SPDX-License-Identifier: Apache-2.0
// How the ranks of a host sum a tensor in its memory: how it is cut, and what each action of a protocol::HostGroup does
// with the elements of a chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "protocol/tensor.h"
#include "tensor/chunk_tensor.h"
#include "tensor/chunks.h"

namespace atp::tensor {

// Of the ranks of a host, for all their operations.
struct HostRules {
    std::vector<std::uint16_t> ranks;        // their numbers in the job
    unsigned rank = 0;                       // this one among them
    std::uint64_t chunk_lanes = 1;           // that each place has room for
    std::uint64_t range_bytes = 65536;       // that a rank adds at a time, about
    double scale = 1;                        // of the job
    std::optional<ChunkRules> network = {};  // nullopt: there are no other hosts
};

// Where a slot of the memory has what belongs to a chunk.
struct ChunkPlaces {
    std::vector<std::byte*> ranks{};  // lanes of each rank, or its native elements
    std::byte* sums = nullptr;
    // Without other hosts, for each span of the chunk: what each rank says about its scale. It writes that with its
    // lanes.
    std::vector<std::span<std::uint32_t>> votes{};
    // Without other hosts, for each cell of the chunk: the largest magnitude of its sums. The rank that adds the cell
    // writes it with them.
    std::span<float> magnitudes{};
};

// One operation of one rank.
//
// Ownership: borrows the tensor and the rules.
// Calling order: submit(); then the function of each action that the group requests, until end_chunk() is stored.
// Threads: one at a time. HostGroup decides who may touch which places.
// Failure: none.
class HostPart {
  public:
    // `alignment`: without other hosts, chunks begin at multiples of it.
    HostPart(protocol::Tensor& tensor, std::uint64_t alignment, const HostRules& rules);

    template <class Group>
    void submit(Group& group) {
        first_chunk_ =
            group.submit(purpose_, chunks_, ranges_of(chunk_units_), ranges_of(size_ - (chunks_ - 1) * chunk_units_));
    }
    [[nodiscard]] std::uint64_t first_chunk() const { return first_chunk_; }
    [[nodiscard]] std::uint64_t end_chunk() const { return first_chunk_ + chunks_; }
    // What the rank writes beside its elements, before it arrives.
    [[nodiscard]] std::uint64_t purpose() const { return purpose_; }
    // The elements of the chunk can be read.
    [[nodiscard]] bool ready(std::uint64_t chunk) const;

    // load() and store() return how many bytes they copied.
    std::uint64_t load(std::uint64_t chunk, const ChunkPlaces& places) const;
    void add(std::uint64_t chunk, std::uint32_t range, const ChunkPlaces& places);
    // For the network. `keeps` owns the memory and the tensor.
    [[nodiscard]] std::unique_ptr<ChunkTensor> sums_of(std::uint64_t chunk, const ChunkPlaces& places,
                                                       std::shared_ptr<const void> keeps) const;
    std::uint64_t store(std::uint64_t chunk, const ChunkPlaces& places) const;

  private:
    struct UnitRange {
        std::uint64_t first = 0;
        std::size_t count = 0;
    };
    using Cursors = std::span<const std::byte*>;  // where a rank reads from each rank

    [[nodiscard]] UnitRange units_of(std::uint64_t chunk) const;
    [[nodiscard]] std::uint32_t ranges_of(std::uint64_t units) const {
        return static_cast<std::uint32_t>((units + range_units_ - 1) / range_units_);
    }
    [[nodiscard]] unsigned index_of(std::uint32_t rank) const;
    [[nodiscard]] protocol::Delivery delivery_of(std::uint64_t chunk) const;
    // The sums of the chunk are the elements of this rank.
    [[nodiscard]] std::optional<unsigned> copied_from(std::uint64_t chunk) const;
    // The scale of each span follows from the votes in this memory.
    [[nodiscard]] bool votes() const { return span_ != 0 && !owned_ && !rules_->network; }
    void add_floats(const UnitRange& units, std::uint64_t chunk_first, const ChunkPlaces& places,
                    Cursors cursors) const;
    void settle(const UnitRange& units, const ChunkPlaces& places) const;

    protocol::Tensor* tensor_;
    const HostRules* rules_;
    std::uint64_t first_chunk_ = 0;
    std::uint64_t chunks_ = 0;
    std::uint64_t size_;             // in units
    std::uint64_t chunk_units_ = 0;  // of each chunk but the last
    std::uint64_t range_units_ = 0;  // of each range but the last
    std::uint64_t span_ = 0;         // units that one rank adds; 0: all have the scale of the job
    std::uint64_t cell_ = 0;         // units with a scale of their own, which divide a span; 0 if span_ is 0
    std::size_t unit_bytes_;         // of a lane, or of a native element
    protocol::NativeElements native_{};
    // Index of the only rank whose elements are not all zero; the number of ranks: it is on another host.
    std::optional<unsigned> source_{};
    std::uint64_t purpose_ = 0;
    bool owned_ = false;                       // each chunk has an owner: Tensor::delivery()
    std::vector<const std::byte*> cursors_{};  // of add(), which each rank calls for each range
};

}  // namespace atp::tensor
