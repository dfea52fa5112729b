// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "wire/outbox.h"

namespace atp::testing {

// An outbox that keeps the packets that machines send.
//
// Calling order: at most `room` packets, then flush(), which returns them. Like a socket, flush() reads borrowed
// packets.
class RecordingOutbox final : public wire::Outbox {
  public:
    struct Packet {
        std::vector<std::byte> bytes;
        wire::Address to;
        wire::Ecn ecn = wire::Ecn::not_capable;
    };

    std::size_t room = std::numeric_limits<std::size_t>::max();  // number of packets that fit until the next flush()
    std::vector<std::uint32_t> expected;                         // arguments of all calls of expect()

    void expect(std::uint32_t packets) override { expected.push_back(packets); }
    [[nodiscard]] std::span<std::byte> reserve(std::size_t max_bytes) override {
        if (queue_.size() >= room) return {};
        reserved_.assign(max_bytes, std::byte{});
        return reserved_;
    }
    void commit(std::size_t bytes, const wire::Address& to, wire::Ecn ecn) override {
        reserved_.resize(bytes);
        queue_.push_back({.copy = std::move(reserved_), .borrowed = {}, .to = to, .ecn = ecn});
    }
    [[nodiscard]] bool borrow(std::span<const std::byte> bytes, const wire::Address& to, wire::Ecn ecn) override {
        if (queue_.size() >= room) return false;
        queue_.push_back({.copy = {}, .borrowed = bytes, .to = to, .ecn = ecn});
        return true;
    }
    [[nodiscard]] bool repeat(const wire::Address& to) override {
        if (queue_.empty() || queue_.size() >= room) return false;
        Queued again = queue_.back();
        again.to = to;
        queue_.push_back(std::move(again));
        ++repeated_;
        return true;
    }

    [[nodiscard]] std::vector<Packet> flush() {
        std::vector<Packet> packets;
        for (const Queued& queued : queue_) {
            packets.push_back({.bytes = queued.borrowed.empty()
                                            ? queued.copy
                                            : std::vector<std::byte>(queued.borrowed.begin(), queued.borrowed.end()),
                               .to = queued.to,
                               .ecn = queued.ecn});
        }
        queue_.clear();
        return packets;
    }
    [[nodiscard]] std::size_t waiting() const { return queue_.size(); }
    [[nodiscard]] std::size_t repeated() const { return repeated_; }  // calls of repeat() that returned true

  private:
    struct Queued {
        std::vector<std::byte> copy;
        std::span<const std::byte> borrowed;
        wire::Address to;
        wire::Ecn ecn = wire::Ecn::not_capable;
    };

    std::vector<std::byte> reserved_;
    std::vector<Queued> queue_;
    std::size_t repeated_ = 0;
};

}  // namespace atp::testing
