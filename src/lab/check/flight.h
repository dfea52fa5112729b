// SPDX-License-Identifier: Apache-2.0
// A packet in flight between two processes, or an order to one of them.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "check/system.h"

namespace atp::check {

struct Flight {
    enum class Kind : std::uint8_t {
        datagram,
        unreachable,  // a report: no process has the port of `from`. With the begin of the datagram
        start,        // orders, which cannot be lost
        leave,
        batch_ends,  // a switch handles the datagrams that wait, or sends the lists of ACKs that wait
    };
    static constexpr std::size_t header_bytes = 3;

    Kind kind = Kind::datagram;
    std::uint8_t from = 0;  // process
    std::uint8_t to = 0;    // process; a switch in the path may get the packet first
    std::span<const std::byte> bytes{};

    [[nodiscard]] static Flight of(std::span<const std::byte> packet) {
        return {.kind = static_cast<Kind>(packet[0]),
                .from = std::to_integer<std::uint8_t>(packet[1]),
                .to = std::to_integer<std::uint8_t>(packet[2]),
                .bytes = packet.subspan(header_bytes)};
    }
    // `next`: the node that gets it.
    [[nodiscard]] Sent sent_to(unsigned next) const {
        Sent sent{.to = next, .size = static_cast<std::uint32_t>(header_bytes + bytes.size())};
        assert(sent.size <= sent.bytes.size());
        sent.bytes[0] = static_cast<std::byte>(kind), sent.bytes[1] = static_cast<std::byte>(from);
        sent.bytes[2] = static_cast<std::byte>(to);
        std::ranges::copy(bytes, sent.bytes.begin() + header_bytes);
        return sent;
    }
    [[nodiscard]] bool is_order() const { return kind >= Kind::start; }
};

// An order of a node to itself.
[[nodiscard]] inline Sent order_of(Flight::Kind kind, unsigned node) {
    const auto number = static_cast<std::uint8_t>(node);
    return Flight{.kind = kind, .from = number, .to = number}.sent_to(node);
}

}  // namespace atp::check
