// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "wire/outbox.h"

namespace atp::host {

// The packets that a process sends in one call, each with bytes of its own.
class PacketList final : public wire::Outbox {
  public:
    struct ListedPacket {
        std::vector<std::byte> bytes;
        wire::Address to;
        wire::Ecn ecn = wire::Ecn::not_capable;
    };

    [[nodiscard]] std::span<std::byte> reserve(std::size_t max_bytes) override;
    void commit(std::size_t bytes, const wire::Address& to, wire::Ecn ecn) override;
    [[nodiscard]] bool borrow(std::span<const std::byte> bytes, const wire::Address& to, wire::Ecn ecn) override;
    [[nodiscard]] bool repeat(const wire::Address& to) override;
    [[nodiscard]] bool empty() const { return packets_.empty(); }
    [[nodiscard]] std::vector<ListedPacket> take() { return std::exchange(packets_, {}); }

  private:
    std::vector<std::byte> room_;
    std::vector<ListedPacket> packets_;
};

}  // namespace atp::host
