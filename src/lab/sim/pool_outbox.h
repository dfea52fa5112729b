// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "sim/ids.h"
#include "sim/network.h"
#include "wire/outbox.h"

namespace atp::sim {

class Processes;

// ACKs that a switch sent in lists, for one job. Copies are not counted.
struct ListCounts {
    std::uint64_t acks = 0;
    std::uint64_t lists = 0;
};

// Sends packets of one process over the links of its node. They lie in the pool: a packet that is sent on, and copies
// of one packet, need no further buffer.
//
// Ownership: owns a reference to the last packet. Borrows everything else for its life, which is one call of a machine.
// Threads: none. Failure: a packet to an address that no process had is dropped.
class PoolOutbox final : public wire::Outbox {
  public:
    // `received`: packets that the process may send on.
    PoolOutbox(Processes& processes, ProcessId from, std::span<const PacketId> received, Time now)
        : processes_(processes), from_(from), received_(received), now_(now) {}
    ~PoolOutbox() override { release(); }
    PoolOutbox(const PoolOutbox&) = delete;
    PoolOutbox& operator=(const PoolOutbox&) = delete;

    // The room is shorter than `max_bytes` if no packet of this network is that long.
    [[nodiscard]] std::span<std::byte> reserve(std::size_t max_bytes) override;
    void commit(std::size_t bytes, const wire::Address& to, wire::Ecn ecn) override;
    [[nodiscard]] bool borrow(std::span<const std::byte> bytes, const wire::Address& to, wire::Ecn ecn) override;
    [[nodiscard]] bool repeat(const wire::Address& to) override;

  private:
    void keep(PacketId packet, wire::Ecn ecn);
    void send(const wire::Address& to);
    void release();

    Processes& processes_;
    ProcessId from_;
    std::span<const PacketId> received_;
    Time now_;
    std::optional<PacketId> last_;
    bool congested_ = false;  // last_
};

}  // namespace atp::sim
