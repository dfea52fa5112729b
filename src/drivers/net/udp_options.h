// SPDX-License-Identifier: Apache-2.0
// Opens a UDP socket as configured: every option set, checked by reading it back where the kernel may grant less than
// it is asked for, and written into the report.
#pragma once

#include "base/result.h"
#include "net/descriptor.h"
#include "net/udp_config.h"
#include "net/udp_report.h"

namespace atp::net {

// Non-blocking, bound to config.local. An IPv6 socket is for IPv6 alone: one socket for both would see IPv4 peers under
// a second name and take its marks from two places.
[[nodiscard]] Result<Descriptor> open_udp(const UdpConfig& config, UdpReport& report);

// Of an IPv4 socket that was opened as a member.
struct GroupMembership {
    wire::Address group;
    wire::Address member_at;  // of the interface
};
[[nodiscard]] Result<void> join_group(const Descriptor& socket, const GroupMembership& membership);
[[nodiscard]] Result<void> leave_group(const Descriptor& socket, const GroupMembership& membership);

[[nodiscard]] Result<wire::Address> local_address(const Descriptor& socket);

}  // namespace atp::net
