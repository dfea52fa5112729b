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

// How much one message, which is one buffer for the kernel to cut into datagrams, may hold.
struct MessageLimits {
    std::uint32_t packets = 1;
    std::uint32_t bytes = 0;
};

// The packets that wait to be sent, in memory that is claimed once, and how they group into messages: equally sized
// packets to one destination travel as one, whatever was committed between them. Order is kept for each destination,
// and given up between destinations. No system call is made here: UdpSender asks with plan() and reports with sent().
//
// Calling order: reserve(), write, commit(), any number of times, or borrow(); then plan(), sent() for each message
// that the kernel took and drop() for one that it refuses for good, until empty() or no more is taken; then settle().
// Owns: the arena, and the list of packets. Borrowed bytes must stay as they are until settle().
// Threads: one.
// Failure: where there is no room left for bytes or packets, reserve() is empty and borrow() and repeat() are false,
// until what waits was sent.
class SendQueue {
  public:
    SendQueue(std::uint32_t arena_bytes, std::uint32_t packets);

    // Room for one packet of up to `max_bytes`, behind the packets committed before; forgotten unless committed.
    [[nodiscard]] std::span<std::byte> reserve(std::size_t max_bytes);
    // The first `bytes` of what reserve() gave. Each reserve() allows one commit(), with no other call in between.
    void commit(std::size_t bytes, const wire::Address& to, wire::Ecn ecn);
    // The bytes of the last commit() or borrow() since settle() also to somebody else, without another copy.
    [[nodiscard]] bool repeat(const wire::Address& to);
    // A packet in the caller's memory.
    [[nodiscard]] bool borrow(std::span<const std::byte> bytes, const wire::Address& to, wire::Ecn ecn);

    [[nodiscard]] bool empty() const { return waiting_ == 0; }
    [[nodiscard]] std::uint32_t waiting() const { return waiting_; }  // packets

    // One message; its `parts` hold until the next plan().
    struct Message {
        const wire::Address* to = nullptr;
        wire::Ecn ecn = wire::Ecn::capable_0;
        std::uint32_t packets = 0;
        std::uint32_t packet_bytes = 0;  // of each; the last may be shorter
        std::uint32_t bytes = 0;
        std::span<iovec> parts;
        std::uint32_t run = 0;   // for sent() and drop()
        std::uint32_t rest = 0;  // the packet of this run that comes next
    };
    // Fills `messages` from the front of what waits; how many it filled.
    [[nodiscard]] std::size_t plan(std::span<Message> messages, const MessageLimits& limits);
    // In the order of the plan, without a gap.
    void sent(const Message& message);
    void drop(const Message& message) { sent(message); }
    // The end of a flush: forgets what was sent, and copies borrowed packets that still wait into the arena. Returns
    // how many of them had to be dropped because they do not fit.
    std::uint32_t settle();

  private:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    struct Packet {
        const std::byte* data = nullptr;
        std::uint32_t bytes = 0;
        std::uint32_t next = none;  // of the same destination
        wire::Ecn ecn = wire::Ecn::capable_0;
        bool borrowed = false;
    };
    // All that waits for one destination.
    struct Run {
        wire::Address to;
        std::uint32_t first = none;
        std::uint32_t last = none;
    };
    // An entry of the table of destinations; one of an earlier round counts as empty, so a round ends without a sweep.
    struct Slot {
        std::uint32_t round = 0;
        std::uint32_t run = 0;
    };

    [[nodiscard]] bool append(const Packet& packet, const wire::Address& to);
    [[nodiscard]] std::uint32_t run_of(const wire::Address& to);
    [[nodiscard]] static bool joins(const Packet& packet, const Message& message, const MessageLimits& limits);
    [[nodiscard]] std::uint32_t fill(Message& message, std::uint32_t run, std::uint32_t first,
                                     const MessageLimits& limits);
    std::uint32_t adopt(Run& run);
    void clear();

    std::uint32_t arena_bytes_;
    std::uint32_t used_ = 0;      // bytes of the arena
    std::uint32_t reserved_ = 0;  // behind them
    AlignedBytes arena_;
    std::uint32_t packet_limit_;
    std::vector<Packet> packets_;
    std::vector<Run> runs_;
    std::uint32_t front_ = 0;     // runs before this one are sent
    std::uint32_t last_run_ = 0;  // packets come in bursts to one destination
    std::vector<Slot> slots_;
    std::uint32_t round_ = 1;
    std::vector<iovec> parts_;
    std::uint32_t waiting_ = 0;
    std::uint32_t borrowed_ = 0;
};

}  // namespace atp::net
