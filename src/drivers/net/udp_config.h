// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "wire/datagram.h"

namespace atp::net {

// What is asked of a UDP socket. Everything that the kernel may lack is a wish: UdpReport tells what came of it.
struct UdpConfig {
    wire::Address local;        // port 0: any free one; a multicast group: what is sent there, to all who are in it
    wire::Address member_at{};  // of the interface that joins this group
    bool reuse_port = false;    // several sockets on one port, each with a share of the peers: one for each thread

    bool mmsg = true;  // sendmmsg, recvmmsg: many messages a system call
    bool gso = true;   // UDP_SEGMENT: many equal packets to one destination are one message when sent
    bool gro = true;   // UDP_GRO: and when received
    bool ecn = true;   // sends ECT(0), reads CE

    // Sets DF and ignores what ICMP says of the path: what is too large for the interface is refused when sent, what is
    // too large for the path is lost. Where this is off, IP fragments.
    bool forbid_fragments = true;

    // As the socket options count them: payload, before the kernel doubles it for its own bookkeeping.
    std::uint32_t receive_buffer_bytes = 4 << 20;
    std::uint32_t send_buffer_bytes = 4 << 20;
    std::uint32_t busy_poll_us = 0;  // SO_BUSY_POLL: let system calls poll the device's queue for so long; 0: never

    std::uint32_t max_packet_bytes = wire::max_udp_payload_bytes;  // longer ones arrive truncated
    std::uint32_t receive_arena_bytes = 1 << 19;                   // at least one message whatever is said here
    std::uint32_t send_arena_bytes = 1 << 20;
    std::uint32_t send_packets = 1024;  // that can wait at once
};

}  // namespace atp::net
