// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "wire/datagram.h"

namespace atp::net {

// Configuration of a UDP socket. The kernel may lack a feature or grant less: UdpReport lists what is in use.
struct UdpConfig {
    wire::Address local;        // to bind; port 0: any free port; a multicast group (IPv4): the socket joins it
    wire::Address member_at{};  // address of the interface that joins the group
    int inherited = -1;         // a socket that is bound to `local` already, used instead of a new one; -1: none
    bool reuse_port = false;    // several sockets share one port, one for each thread; each gets a part of the peers

    bool mmsg = true;  // sendmmsg, recvmmsg: many messages per system call
    bool gso = true;   // UDP_SEGMENT: many equal packets to one destination are one message when sent
    bool gro = true;   // UDP_GRO: many equal packets of one sender are one message when received
    bool ecn = true;   // sends ECT(0), reads CE

    // True: sets DF and ignores ICMP messages about the path. The kernel refuses a packet that is too large for the
    // interface. A packet that is too large for the path is lost. False: IP fragments packets.
    bool forbid_fragments = true;

    // True: Transport::take_errors() returns what the kernel and ICMP messages report about packets sent earlier.
    bool reports_errors = false;

    // The value of the socket option, before the kernel doubles it for its own bookkeeping.
    std::uint32_t receive_buffer_bytes = 4 << 20;
    std::uint32_t send_buffer_bytes = 4 << 20;
    std::uint32_t busy_poll_us = 0;  // SO_BUSY_POLL: how long system calls poll the device's queue; 0: never

    std::uint32_t max_packet_bytes = wire::max_udp_payload_bytes;  // longer packets arrive truncated
    std::uint32_t receive_arena_bytes = 1 << 19;                   // raised to hold at least one message
    std::uint32_t send_arena_bytes = 1 << 20;
    std::uint32_t send_packets = 1024;  // limit of waiting packets
};

}  // namespace atp::net
