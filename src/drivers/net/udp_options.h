// SPDX-License-Identifier: Apache-2.0
// Opens a UDP socket, sets its options and writes the result of each into the report. Buffer sizes are read back, since
// the kernel may grant less than requested.
#pragma once

#include "base/result.h"
#include "net/descriptor.h"
#include "net/udp_config.h"
#include "net/udp_report.h"

namespace atp::net {

// The socket is non-blocking and bound to config.local. An IPv6 socket accepts IPv6 only: with both families on one
// socket, an IPv4 peer would have two addresses, and ECN marks would arrive in two kinds of control messages.
[[nodiscard]] Result<Descriptor> open_udp(const UdpConfig& config, UdpReport& report);

// Membership of an IPv4 socket in a multicast group.
struct GroupMembership {
    wire::Address group;
    wire::Address member_at;  // address of the interface
};
[[nodiscard]] Result<void> join_group(const Descriptor& socket, const GroupMembership& membership);
[[nodiscard]] Result<void> leave_group(const Descriptor& socket, const GroupMembership& membership);

[[nodiscard]] Result<wire::Address> local_address(int socket);
[[nodiscard]] inline Result<wire::Address> local_address(const Descriptor& socket) {
    return local_address(socket.number());
}

}  // namespace atp::net
