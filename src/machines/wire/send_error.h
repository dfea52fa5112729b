// SPDX-License-Identifier: Apache-2.0
// What the host or the network reports about a packet that this process sent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/address.h"

namespace atp::wire {

struct SendError {
    enum class Kind : std::uint8_t {
        port_unreachable,  // no process of the destination has the port
        too_long,          // the packet is longer than the MTU of the interface or of a link on the path
    };
    static constexpr std::size_t most_quoted_bytes = 64;

    Kind kind = Kind::port_unreachable;
    Address to{};             // destination of the packet
    bool by_network = false;  // an ICMP message, which others can forge; false: this host refused to send the packet
    std::uint32_t bytes = 0;  // UDP payload of the packet; 0: not known
    std::uint32_t mtu = 0;    // too_long: of the interface, the route or the link, with IP headers; 0: not known
    std::size_t quoted_bytes = 0;  // by_network: so many bytes of `quoted` are the begin of the packet's payload
    std::array<std::byte, most_quoted_bytes> quoted{};

    [[nodiscard]] std::span<const std::byte> quote() const { return std::span(quoted).first(quoted_bytes); }
};

}  // namespace atp::wire
