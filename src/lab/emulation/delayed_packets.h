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

// The action for a packet at its departure.
enum class DelayedFor : std::uint8_t { processing, sending };

struct DelayedPacket {
    std::span<std::byte> bytes;  // may be read or rewritten in place
    std::size_t capacity = 0;    // maximum size in place
    wire::Address peer;          // sender or destination
    wire::Ecn ecn = wire::Ecn::not_capable;
    DelayedFor purpose = DelayedFor::processing;
    Time departs{};
};

// Packets of all emulated ports that wait for their departure. Each packet is copied into a slot. A heap orders the
// slots, because ports depart independently. The slot freed last is used first, so memory that is not needed is never
// touched.
//
// Ownership: owns all memory, allocated at construction.
// Calling order: hold() at any time; at next_departure() or later, pop_due() until it returns nothing. A popped packet
//   is valid until the next pop_due(), also after calls of hold().
// Threads: one.
// Failure: hold() returns false if no slot is free or the packet is longer than a slot. The caller drops and counts the
//   packet.
class DelayedPackets {
  public:
    // Holds at most `packets` packets of at most `max_packet_bytes` each.
    DelayedPackets(std::uint32_t packets, std::uint32_t max_packet_bytes);

    [[nodiscard]] bool hold(std::span<const std::byte> bytes, const wire::Address& peer, wire::Ecn ecn,
                            DelayedFor purpose, Time departs);
    // The packet with the earliest departure, if that is `now` or earlier. Equal departures leave in the order of
    // hold().
    [[nodiscard]] std::optional<DelayedPacket> pop_due(Time now);
    // `never` if no packet waits.
    [[nodiscard]] Time next_departure() const;

    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(waiting_.size()); }
    [[nodiscard]] bool full() const { return size() == packet_limit_; }

  private:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    struct Slot {
        wire::Address peer;
        std::uint32_t bytes = 0;
        wire::Ecn ecn = wire::Ecn::not_capable;
        DelayedFor purpose = DelayedFor::processing;
    };
    struct Waiting {
        Time departs;
        std::uint64_t order = 0;  // sequence number of hold(), for equal departures
        std::uint32_t slot = 0;
    };

    [[nodiscard]] static bool departs_later(const Waiting& a, const Waiting& b);
    [[nodiscard]] std::byte* bytes_of(std::uint32_t slot) const {
        return arena_.get() + std::size_t{slot} * stride_bytes_;
    }

    std::uint32_t packet_limit_;
    std::uint32_t max_packet_bytes_;
    std::size_t stride_bytes_;  // a multiple of the cache line
    net::AlignedBytes arena_;   // one slot more than packet_limit_, for the packet popped last
    std::vector<Slot> slots_;
    std::vector<std::uint32_t> free_;
    std::vector<Waiting> waiting_;  // binary heap
    std::uint64_t order_ = 0;
    std::uint32_t popped_ = none;  // slot that the caller uses
};

}  // namespace atp::emulation
