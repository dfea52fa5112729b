// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "net/aligned_bytes.h"
#include "wire/address.h"
#include "wire/datagram.h"

namespace atp::net {

// Limits of one message. A message is one buffer that the kernel cuts into datagrams.
struct MessageLimits {
    std::uint32_t packets = 1;
    std::uint32_t bytes = 0;
};

// Queues packets and groups them into messages. Packets of equal size to one destination form one message, even if
// packets to other destinations were committed between them. The order of packets is kept for each destination, but not
// between destinations. The queue makes no system call: UdpSender calls plan() and reports with sent().
//
// Ownership: owns the arena, allocated at construction, and the list of packets. Borrowed bytes must not change until
//   settle().
// Calling order: reserve(), write, commit(), any number of times, or borrow(). Then plan(), with sent() for each
//   message that the kernel took and drop() for one that it refuses permanently. Repeat until empty() or until the
//   kernel takes no more; then settle().
// Threads: none. One thread drives one queue.
// Failure: if there is no room for bytes or packets, reserve() returns an empty span, and borrow() and repeat() return
//   false. Room is free again when no packet waits and settle() was called.
class SendQueue {
  public:
    SendQueue(std::uint32_t arena_bytes, std::uint32_t packets);

    // Room for one packet of up to `max_bytes`, or an empty span. The room is released unless the next call commits it.
    [[nodiscard]] std::span<std::byte> reserve(std::size_t max_bytes);
    // Queues the first `bytes` of the reserved room. Each reserve() allows one commit(), with no other call in between.
    void commit(std::size_t bytes, const wire::Address& to, wire::Ecn ecn);
    // Queues the packet of the last commit() or borrow() since settle() for a further destination, without a copy.
    [[nodiscard]] bool repeat(const wire::Address& to);
    // Queues a packet in the caller's memory. False: no room.
    [[nodiscard]] bool borrow(std::span<const std::byte> bytes, const wire::Address& to, wire::Ecn ecn);

    [[nodiscard]] bool empty() const { return waiting_ == 0; }
    [[nodiscard]] std::uint32_t waiting() const { return waiting_; }  // packets

    // One message; `to` and `parts` are valid until the next plan() or settle().
    struct Message {
        const wire::Address* to = nullptr;
        wire::Ecn ecn = wire::Ecn::capable_0;
        std::uint32_t packets = 0;
        std::uint32_t packet_bytes = 0;  // of each; the last may be shorter
        std::uint32_t bytes = 0;
        std::span<iovec> parts;
        std::uint32_t run = 0;   // for sent() and drop()
        std::uint32_t rest = 0;  // the next packet of this run
    };
    // Fills `messages` from the front of the queue and returns how many it filled.
    [[nodiscard]] std::size_t plan(std::span<Message> messages, const MessageLimits& limits);
    // Removes a message from the queue. Call in the order of the plan, without a gap.
    void sent(const Message& message);
    void drop(const Message& message) { sent(message); }
    // Ends a flush: once the queue is empty, frees the arena; otherwise copies borrowed packets that still wait into
    // it. Returns how many of them do not fit and are dropped.
    std::uint32_t settle();

  private:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    struct QueuedPacket {
        const std::byte* data = nullptr;
        std::uint32_t bytes = 0;
        std::uint32_t next = none;  // packet of the same destination
        wire::Ecn ecn = wire::Ecn::capable_0;
        bool borrowed = false;
    };
    // The packets that wait for one destination.
    struct Run {
        wire::Address to;
        std::uint32_t first = none;
        std::uint32_t last = none;
    };
    // An entry of the hash table of destinations. An entry of an earlier round counts as empty, so clear() need not
    // change the table.
    struct TableEntry {
        std::uint32_t round = 0;
        std::uint32_t run = 0;
    };

    [[nodiscard]] bool append(const QueuedPacket& packet, const wire::Address& to);
    [[nodiscard]] std::uint32_t run_of(const wire::Address& to);
    [[nodiscard]] static bool joins(const QueuedPacket& packet, const Message& message, const MessageLimits& limits);
    [[nodiscard]] std::uint32_t fill(Message& message, std::uint32_t run, std::uint32_t first,
                                     const MessageLimits& limits);
    std::uint32_t adopt(Run& run);
    void clear();

    std::uint32_t arena_bytes_;
    std::uint32_t used_ = 0;      // bytes of the arena
    std::uint32_t reserved_ = 0;  // bytes after used_, until commit()
    AlignedBytes arena_;
    std::uint32_t packet_limit_;
    std::vector<QueuedPacket> packets_;
    std::vector<Run> runs_;
    std::uint32_t front_ = 0;     // runs before this one have no waiting packets
    std::uint32_t last_run_ = 0;  // of the last packet queued: packets arrive in bursts for one destination
    std::vector<TableEntry> slots_;
    std::uint32_t round_ = 1;
    std::vector<iovec> parts_;
    std::uint32_t waiting_ = 0;   // packets not sent
    std::uint32_t borrowed_ = 0;  // packets borrowed since settle()
};

}  // namespace atp::net
