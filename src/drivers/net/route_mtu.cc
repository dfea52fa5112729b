// SPDX-License-Identifier: Apache-2.0
#include "net/route_mtu.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "net/descriptor.h"

namespace atp::net {

Result<std::uint32_t> route_mtu(const wire::Address& peer) {
    const bool v6 = peer.family() == wire::Family::ipv6;
    const Descriptor socket(::socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket.valid()) return fail_with_errno(Operation::open, errno, to_string(peer));
    if (connect(socket.number(), peer.data(), peer.size()) != 0) {
        return fail_with_errno(Operation::connect, errno, to_string(peer));
    }
    int mtu = 0;
    socklen_t size = sizeof mtu;
    if (getsockopt(socket.number(), v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_MTU : IP_MTU, &mtu, &size) != 0) {
        return fail_with_errno(Operation::configure, errno, to_string(peer), v6 ? "IPV6_MTU" : "IP_MTU");
    }
    return static_cast<std::uint32_t>(mtu);
}

}  // namespace atp::net
