// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/time.h"
#include "net/aligned_bytes.h"
#include "wire/address.h"
#include "wire/datagram.h"

namespace atp::emulation {

// What is to happen to a packet when its time has come.
enum class HeldFor : std::uint8_t { processing, sending };

struct HeldPacket {
    std::span<std::byte> bytes;  // to be read or rewritten in place
    std::size_t capacity = 0;    // how far it may grow in place
    wire::Address peer;          // who sent it, or who is to have it
    wire::Ecn ecn = wire::Ecn::not_capable;
    HeldFor purpose = HeldFor::processing;
    Time departs{};
};

// The packets of all emulated ports that wait for their departure, each copied into a slot of its own: a heap over
// them, because ports depart independently of each other. The slot freed last is taken first, so memory that was never
// needed is never touched.
//
// Calling order: hold() at any time; pop_due() again and again until it is empty, at next_departure() or later. What it
// gives stays valid until the next pop_due(), and hold() may be called meanwhile.
// Owns: all memory, claimed at construction. Threads: one.
// Failure: hold() is false where no slot is free or the packet is longer than a slot; the caller drops it, and counts.
class HeldPackets {
  public:
    // Up to `packets` wait at once, each up to `max_packet_bytes` long.
    HeldPackets(std::uint32_t packets, std::uint32_t max_packet_bytes);

    [[nodiscard]] bool hold(std::span<const std::byte> bytes, const wire::Address& peer, wire::Ecn ecn, HeldFor purpose,
                            Time departs);
    // The packet that departs first, where that is `now` or before; of several with one departure, the one held first.
    [[nodiscard]] std::optional<HeldPacket> pop_due(Time now);
    // never where nothing waits.
    [[nodiscard]] Time next_departure() const;

    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(waiting_.size()); }
    [[nodiscard]] bool full() const { return size() == packet_limit_; }

  private:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    struct Slot {
        wire::Address peer;
        std::uint32_t bytes = 0;
        wire::Ecn ecn = wire::Ecn::not_capable;
        HeldFor purpose = HeldFor::processing;
    };
    struct Waiting {
        Time departs;
        std::uint64_t order = 0;  // in which they were held
        std::uint32_t slot = 0;
    };

    [[nodiscard]] static bool departs_later(const Waiting& a, const Waiting& b);
    [[nodiscard]] std::byte* bytes_of(std::uint32_t slot) const {
        return arena_.get() + std::size_t{slot} * stride_bytes_;
    }

    std::uint32_t packet_limit_;
    std::uint32_t max_packet_bytes_;
    std::size_t stride_bytes_;  // whole cache lines
    net::AlignedBytes arena_;   // a slot more than can wait: for the packet that was popped last
    std::vector<Slot> slots_;
    std::vector<std::uint32_t> free_;
    std::vector<Waiting> waiting_;  // a heap
    std::uint64_t order_ = 0;
    std::uint32_t popped_ = none;  // slot in the caller's hands
};

}  // namespace atp::emulation
