// SPDX-License-Identifier: Apache-2.0
// A received UDP datagram with its metadata, and the limit of its length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/address.h"

namespace atp::wire {

// The two ECN bits of the IP header (RFC 3168). ATP sends ECT(0). A congested switch then marks the packet instead of
// dropping it, and the mark arrives as CE (`congested`).
enum class Ecn : std::uint8_t { not_capable = 0, capable_1 = 1, capable_0 = 2, congested = 3 };

inline constexpr unsigned ecn_mask = 3;

inline constexpr std::uint32_t max_udp_payload_bytes = 65'507;  // over IPv4; IPv6 allows 20 bytes more

// A datagram in its receive buffer, which it borrows. The receiver may read it and rewrite it in place.
struct Datagram {
    std::span<std::byte> bytes;
    // Length in bytes to which the datagram may grow in place. Datagrams that arrived as one message lie back to
    // back, so only the last of them can grow. To grow another, copy it into the send arena.
    std::size_t capacity = 0;
    const Address* from = nullptr;
    Ecn ecn = Ecn::not_capable;
    bool truncated = false;  // longer than max_packet_bytes: the rest is lost
};

}  // namespace atp::wire
