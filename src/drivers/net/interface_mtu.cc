// SPDX-License-Identifier: Apache-2.0
#include "net/interface_mtu.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "net/descriptor.h"

namespace atp::net {
namespace {

struct FreeInterfaces {
    void operator()(ifaddrs* list) const { freeifaddrs(list); }
};

std::uint32_t mtu_of(int descriptor, const char* name) {
    ifreq request{};
    std::strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
    return ::ioctl(descriptor, SIOCGIFMTU, &request) == 0 ? static_cast<std::uint32_t>(request.ifr_mtu) : 0;
}

bool has_host(const ifaddrs& interface, const wire::Address& local) {
    const socklen_t size = interface.ifa_addr->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    return wire::Address::from(interface.ifa_addr, size).with_port(local.port()) == local;
}

}  // namespace

Result<std::uint32_t> interface_mtu(const wire::Address& local) {
    const Descriptor any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifaddrs* list = nullptr;
    if (!any.valid() || ::getifaddrs(&list) != 0) {
        return fail_with_errno(Operation::configure, errno, to_string(local), "the interfaces cannot be listed");
    }
    const std::unique_ptr<ifaddrs, FreeInterfaces> interfaces(list);
    std::uint32_t wired = 0;
    std::uint32_t loopback = 0;
    for (const ifaddrs* next = list; next != nullptr; next = next->ifa_next) {
        if (next->ifa_addr == nullptr || (next->ifa_flags & IFF_UP) == 0) continue;
        if (next->ifa_addr->sa_family != AF_INET && next->ifa_addr->sa_family != AF_INET6) continue;
        const std::uint32_t mtu = mtu_of(any.number(), next->ifa_name);
        if (!local.is_any() && has_host(*next, local)) return mtu;
        std::uint32_t& kind = (next->ifa_flags & IFF_LOOPBACK) != 0 ? loopback : wired;
        kind = std::max(kind, mtu);
    }
    if (local.is_any() && std::max(wired, loopback) != 0) return wired != 0 ? wired : loopback;
    // All of 127.0.0.0/8 belongs to this host, although the interface lists one address.
    if (local.is_loopback() && loopback != 0) return loopback;
    return fail(Operation::bind, Reason::unreachable, to_string(local), "no interface of this host has this address");
}

std::string interface_name(const wire::Address& local) {
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) return {};
    const std::unique_ptr<ifaddrs, FreeInterfaces> interfaces(list);
    for (const ifaddrs* next = list; next != nullptr; next = next->ifa_next) {
        if (next->ifa_addr == nullptr) continue;
        if (next->ifa_addr->sa_family != AF_INET && next->ifa_addr->sa_family != AF_INET6) continue;
        if (has_host(*next, local)) return next->ifa_name;
    }
    return {};
}

}  // namespace atp::net
