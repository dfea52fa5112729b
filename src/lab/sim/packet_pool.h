// SPDX-License-Identifier: Apache-2.0
// Memory of the packets in flight: buffers of one size with counted references. A multicast is one buffer, regardless
// of the number of links that it crosses.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "sim/ids.h"

namespace atp::sim {

// Ownership: owns every buffer. The pool grows in chunks to the largest number in flight, and never shrinks. Any holder
//   of a reference may read. Only the holder of the single reference may write; exclusive() gives it.
class PacketPool {
  public:
    explicit PacketPool(std::size_t capacity_bytes)
        : capacity_((capacity_bytes + line_bytes - 1) / line_bytes * line_bytes),
          chunk_packets_(std::max<std::size_t>(chunk_bytes / capacity_, 1)) {}

    // A buffer of size 0 with one reference, which the caller holds.
    [[nodiscard]] PacketId allocate(ProgramId owner) {
        if (free_.empty()) grow();
        const PacketId id = free_.back();
        free_.pop_back();
        Meta& meta = meta_[id];
        meta = Meta{.data = meta.data, .references = 1, .owner = owner};
        return id;
    }
    // Of the packet that allocate() returns next.
    [[nodiscard]] std::span<std::byte> next_room() {
        if (free_.empty()) grow();
        return room(free_.back());
    }

    void retain(PacketId id) { ++meta_[id].references; }
    void release(PacketId id) {
        assert(meta_[id].references != 0);
        if (--meta_[id].references == 0) free_.push_back(id);
    }

    // The same bytes in a buffer with a single reference. Takes over the caller's reference.
    [[nodiscard]] PacketId exclusive(PacketId id) {
        if (meta_[id].references == 1) return id;
        const PacketId copy = allocate(owner(id));
        std::byte* const bytes = data(copy);
        meta_[copy] = meta_[id];
        meta_[copy].data = bytes;
        meta_[copy].references = 1;
        std::memcpy(bytes, data(id), size(id));
        release(id);
        return copy;
    }

    [[nodiscard]] std::byte* data(PacketId id) const { return meta_[id].data; }
    [[nodiscard]] std::uint32_t size(PacketId id) const { return meta_[id].size; }
    void resize(PacketId id, std::size_t size) {
        meta_[id].size = static_cast<std::uint32_t>(size);
        meta_[id].wire_size = static_cast<std::uint32_t>(size) & ((1U << 31U) - 1U);
    }
    [[nodiscard]] ProgramId owner(PacketId id) const { return meta_[id].owner; }
    // Bytes on the wire. Payload that no node reads needs no memory, so this may exceed size().
    [[nodiscard]] std::uint32_t wire_size(PacketId id) const { return meta_[id].wire_size; }
    [[nodiscard]] bool lossless(PacketId id) const { return meta_[id].lossless; }
    // Destination of a packet that switches only forward.
    [[nodiscard]] NodeId destination(PacketId id) const { return meta_[id].destination; }
    // Of a packet between processes: its sender.
    [[nodiscard]] ProcessId sender(PacketId id) const { return meta_[id].destination; }
    void set_sender(PacketId id, ProcessId sender) { meta_[id].destination = sender; }
    void address(PacketId id, NodeId destination, std::uint32_t wire_bytes, bool lossless) {
        meta_[id].destination = destination;
        meta_[id].wire_size = wire_bytes & ((1U << 31U) - 1U);
        meta_[id].lossless = lossless;
    }
    [[nodiscard]] std::span<std::byte> bytes(PacketId id) const { return {data(id), size(id)}; }
    [[nodiscard]] std::span<std::byte> room(PacketId id) const { return {data(id), capacity_}; }
    // Prefetches a packet: thousands are in flight, more than fit the first cache levels.
    void prefetch(PacketId id) const {
        constexpr std::size_t prefetched_bytes = 512;
        const std::byte* const at = data(id);
        const std::size_t bytes = std::min<std::size_t>(size(id), prefetched_bytes);
        for (std::size_t i = 0; i < bytes; i += line_bytes) __builtin_prefetch(at + i, 1);
    }
    [[nodiscard]] std::size_t capacity() const { return capacity_; }
    [[nodiscard]] std::size_t in_use() const { return meta_.size() - free_.size(); }

  private:
    static constexpr std::size_t line_bytes = 64;
    static constexpr std::size_t chunk_bytes = std::size_t{1} << 21U;  // a huge page

    struct FreeChunk {
        void operator()(std::byte* chunk) const { std::free(chunk); }
    };

    struct Meta {
        std::byte* data = nullptr;
        std::uint32_t size = 0;
        std::uint32_t wire_size : 31 = 0;
        bool lossless : 1 = false;
        NodeId destination = 0;        // of a packet between processes: its sender
        std::uint16_t references = 0;  // one for each link that carries it, and one for each kept copy
        ProgramId owner = 0;
    };
    static_assert(sizeof(Meta) == 24);

    void grow() {
        chunks_.emplace_back(static_cast<std::byte*>(std::aligned_alloc(chunk_bytes, chunk_bytes)));
        if (chunks_.back() == nullptr) throw std::bad_alloc();
        // Thousands of packets are in flight: small pages would miss the TLB with each of them. Only a hint.
        static_cast<void>(madvise(chunks_.back().get(), chunk_bytes, MADV_HUGEPAGE));
        const auto first = static_cast<PacketId>(meta_.size());
        std::byte* const bytes = chunks_.back().get();
        for (std::size_t i = 0; i < chunk_packets_; ++i) meta_.push_back({.data = bytes + i * capacity_});
        for (std::size_t i = chunk_packets_; i-- > 0;) free_.push_back(first + static_cast<PacketId>(i));
    }

    std::size_t capacity_;
    std::size_t chunk_packets_;
    std::vector<std::unique_ptr<std::byte[], FreeChunk>> chunks_;
    std::vector<Meta> meta_;
    std::vector<PacketId> free_;
};

}  // namespace atp::sim
