// SPDX-License-Identifier: Apache-2.0
#include "net/local_route.h"

#include <cerrno>

#include "net/descriptor.h"

namespace atp::net {

Result<wire::Address> local_address_towards(const wire::Address& peer) {
    const Descriptor socket(::socket(peer.data()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket.valid()) return fail_with_errno(Operation::open, errno, to_string(peer));
    if (::connect(socket.number(), peer.data(), peer.size()) != 0) {
        return fail_with_errno(Operation::connect, errno, to_string(peer));
    }
    sockaddr_in6 local{};
    socklen_t size = sizeof local;
    if (::getsockname(socket.number(), reinterpret_cast<sockaddr*>(&local), &size) != 0) {
        return fail_with_errno(Operation::connect, errno, to_string(peer));
    }
    return wire::Address::from(reinterpret_cast<const sockaddr*>(&local), size).with_port(0);
}

}  // namespace atp::net
