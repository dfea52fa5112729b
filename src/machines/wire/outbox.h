// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/address.h"
#include "wire/datagram.h"

namespace atp::wire {

// Takes packets for several receivers, so that copies of one packet share its bytes.
//
// Ownership: owns the rooms that it hands out. Borrowed bytes must not change until the owner of the outbox has flushed
//   it.
// Calling order: reserve(), write the packet, commit(); or borrow(). Then repeat() for each further receiver.
// Threads: none.
// Failure: without room, reserve() returns nothing and borrow() and repeat() return false. There is room again after
//   the next flush. If expect(), reserve() or borrow() flushes, earlier packets cannot be repeated any more:
//   repeat() returns false until the next commit() or borrow() succeeds.
class Outbox {
  public:
    virtual ~Outbox() = default;

    // At most this many packets follow, copies of one committed packet included. An outbox that can flush by itself
    // makes room for all of them.
    virtual void expect(std::uint32_t /*packets*/) {}
    // Room for a packet of up to `max_bytes`.
    [[nodiscard]] virtual std::span<std::byte> reserve(std::size_t max_bytes) = 0;
    // Queues the first `bytes` of the reserved room.
    virtual void commit(std::size_t bytes, const Address& to, Ecn ecn) = 0;
    // Queues a packet in the caller's memory.
    [[nodiscard]] virtual bool borrow(std::span<const std::byte> bytes, const Address& to, Ecn ecn) = 0;
    // Queues the last packet committed or borrowed since the last flush for a further receiver.
    [[nodiscard]] virtual bool repeat(const Address& to) = 0;

  protected:
    Outbox() = default;
    Outbox(const Outbox&) = default;
    Outbox& operator=(const Outbox&) = default;
};

}  // namespace atp::wire
