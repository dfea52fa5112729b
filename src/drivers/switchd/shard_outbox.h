// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "net/transport.h"
#include "wire/outbox.h"

namespace atp::switchd {

// The sending half of a shard's transport: it flushes when its queue is full.
//
// Ownership: borrows the transport.
// Calling order: as wire::Outbox. flush() at the end of a batch, and when the transport is writable while blocked().
// Threads: none.
// Failure: if the kernel accepts no packets, blocked() is true, and packets find room only in what is left of the
// queue.
class ShardOutbox final : public wire::Outbox {
  public:
    // `most_packets`: limit of the transport's queue.
    ShardOutbox(net::Transport& transport, std::uint32_t most_packets)
        : transport_(transport), most_packets_(most_packets) {}

    void expect(std::uint32_t packets) override {
        if (transport_.waiting() + packets > most_packets_) flush();
    }
    [[nodiscard]] std::span<std::byte> reserve(std::size_t max_bytes) override {
        const std::span<std::byte> room = transport_.reserve(max_bytes);
        if (!room.empty()) return room;
        flush();
        return transport_.reserve(max_bytes);
    }
    void commit(std::size_t bytes, const wire::Address& to, wire::Ecn ecn) override {
        transport_.commit(bytes, to, ecn);
        has_last_ = true;
    }
    [[nodiscard]] bool borrow(std::span<const std::byte> bytes, const wire::Address& to, wire::Ecn ecn) override {
        has_last_ = transport_.borrow(bytes, to, ecn);
        if (has_last_) return true;
        flush();
        return has_last_ = transport_.borrow(bytes, to, ecn);
    }
    [[nodiscard]] bool repeat(const wire::Address& to) override { return has_last_ && transport_.repeat(to); }

    void flush() {
        blocked_ = transport_.flush().waiting != 0;
        has_last_ = false;
    }
    // The kernel accepted no more packets in the last flush.
    [[nodiscard]] bool blocked() const { return blocked_; }

  private:
    net::Transport& transport_;
    std::uint32_t most_packets_;
    bool has_last_ = false;  // a packet was queued since the last flush, so it can be repeated
    bool blocked_ = false;
};

}  // namespace atp::switchd
