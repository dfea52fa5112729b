// SPDX-License-Identifier: Apache-2.0
#include "net/udp_options.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "wire/datagram.h"

namespace atp::net {
namespace {

constexpr int on = 1;

// Returns 0, or errno.
int set_option(const Descriptor& socket, int level, int name, int value) {
    return setsockopt(socket.number(), level, name, &value, sizeof value) == 0 ? 0 : errno;
}

int get_option(const Descriptor& socket, int level, int name) {
    int value = 0;
    socklen_t size = sizeof value;
    return getsockopt(socket.number(), level, name, &value, &size) == 0 ? value : -1;
}

std::string kernel_reports(const char* option, int code) {
    return fmt::format("{}: {}", option, strerrordesc_np(code));
}

bool is_v6(const UdpConfig& config) { return config.local.family() == wire::Family::ipv6; }

// Segment size 0 changes nothing, and fails if the kernel does not know the option.
void try_gso(const Descriptor& socket, const UdpConfig& config, UdpReport& report) {
    if (!config.gso) return report.set(Feature::gso, false, false, "disabled by configuration");
    const int code = set_option(socket, SOL_UDP, UDP_SEGMENT, 0);
    report.set(Feature::gso, true, code == 0, code == 0 ? "" : kernel_reports("UDP_SEGMENT", code));
}

void try_gro(const Descriptor& socket, const UdpConfig& config, UdpReport& report) {
    if (!config.gro) return report.set(Feature::gro, false, false, "disabled by configuration");
    const int code = set_option(socket, SOL_UDP, UDP_GRO, on);
    report.set(Feature::gro, true, code == 0, code == 0 ? "" : kernel_reports("UDP_GRO", code));
}

void try_ecn(const Descriptor& socket, const UdpConfig& config, UdpReport& report) {
    if (!config.ecn) return report.set(Feature::ecn, false, false, "disabled by configuration");
    const int capable = static_cast<int>(wire::Ecn::capable_0);
    const bool v6 = is_v6(config);
    int code =
        v6 ? set_option(socket, IPPROTO_IPV6, IPV6_TCLASS, capable) : set_option(socket, IPPROTO_IP, IP_TOS, capable);
    if (code == 0) {
        code =
            v6 ? set_option(socket, IPPROTO_IPV6, IPV6_RECVTCLASS, on) : set_option(socket, IPPROTO_IP, IP_RECVTOS, on);
    }
    const char* const option = v6 ? "IPV6_TCLASS" : "IP_TOS";
    report.set(Feature::ecn, true, code == 0, code == 0 ? "ECT(0)" : kernel_reports(option, code));
}

void try_no_fragments(const Descriptor& socket, const UdpConfig& config, UdpReport& report) {
    if (!config.forbid_fragments) {
        const int code = is_v6(config) ? set_option(socket, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DONT)
                                       : set_option(socket, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT);
        return report.set(Feature::no_fragments, false, false,
                          code == 0 ? "disabled by configuration" : kernel_reports("MTU_DISCOVER", code));
    }
    int code = is_v6(config) ? set_option(socket, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE)
                             : set_option(socket, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
    // Without this option, IPv6 still fragments packets that are longer than the interface's MTU.
    if (code == 0 && is_v6(config)) code = set_option(socket, IPPROTO_IPV6, IPV6_DONTFRAG, on);
    report.set(Feature::no_fragments, true, code == 0, code == 0 ? "DF" : kernel_reports("MTU_DISCOVER", code));
}

// Without the option, a peer that is gone looks like one that is silent.
void try_error_reports(const Descriptor& socket, const UdpConfig& config) {
    if (!config.reports_errors) return;
    if (is_v6(config)) {
        set_option(socket, IPPROTO_IPV6, IPV6_RECVERR, on);
    } else {
        set_option(socket, IPPROTO_IP, IP_RECVERR, on);
    }
}

struct BufferOption {
    Feature feature;
    int option;
    int forced;
    const char* sysctl;
};

// The forced option may exceed the system's limit and needs privilege. The kernel reports twice the size that it
// grants.
void try_buffer(const Descriptor& socket, const BufferOption& buffer, std::uint32_t bytes, UdpReport& report) {
    const int requested = static_cast<int>(bytes);
    if (set_option(socket, SOL_SOCKET, buffer.forced, requested) != 0) {
        set_option(socket, SOL_SOCKET, buffer.option, requested);
    }
    const int granted = get_option(socket, SOL_SOCKET, buffer.option) / 2;
    const bool enough = granted >= requested;
    std::string text = fmt::format("{} bytes", granted);
    if (!enough) {
        // errors.md, none: the event `feature missing` and `atp doctor` have it
        text += fmt::format(" granted, {} requested: raise {}, or run with CAP_NET_ADMIN", requested, buffer.sysctl);
    }
    report.set(buffer.feature, true, enough, std::move(text));
}

void try_busy_poll(const Descriptor& socket, const UdpConfig& config, UdpReport& report) {
    if (config.busy_poll_us == 0) return report.set(Feature::busy_poll, false, false, "disabled by configuration");
    const int code = set_option(socket, SOL_SOCKET, SO_BUSY_POLL, static_cast<int>(config.busy_poll_us));
    report.set(Feature::busy_poll, true, code == 0,
               code == 0 ? fmt::format("{} us", config.busy_poll_us) : kernel_reports("SO_BUSY_POLL", code));
}

// A hop limit that covers the routers of one fabric, and is too low for packets to leave it.
constexpr int group_hops = 8;

void try_groups(const Descriptor& socket, const UdpConfig& config) {
    if (!is_v6(config)) set_option(socket, IPPROTO_IP, IP_MULTICAST_TTL, group_hops);
}

// Several sockets of a host may share one group and port. Each receives every packet.
Result<void> share_group(const Descriptor& socket, const UdpConfig& config) {
    const std::string name = to_string(config.local);
    if (is_v6(config)) return fail(Operation::configure, Reason::unsupported, name, "only IPv4 groups are supported");
    const int code = set_option(socket, SOL_SOCKET, SO_REUSEADDR, on);
    if (code != 0) return fail_with_errno(Operation::configure, code, name, "SO_REUSEADDR");
    return {};
}

in_addr host_of(const wire::Address& address) {
    sockaddr_in v4{};
    std::memcpy(&v4, address.data(), std::min<std::size_t>(address.size(), sizeof v4));
    return v4.sin_addr;
}

Result<void> change_membership(const Descriptor& socket, const GroupMembership& membership, int option,
                               const char* name) {
    const ip_mreq request{.imr_multiaddr = host_of(membership.group), .imr_interface = host_of(membership.member_at)};
    if (setsockopt(socket.number(), IPPROTO_IP, option, &request, sizeof request) != 0) {
        return fail_with_errno(Operation::configure, errno, to_string(membership.group), name);
    }
    return {};
}

void try_features(const Descriptor& socket, const UdpConfig& config, UdpReport& report) {
    // mmsg is assumed to exist. The first call reports it if the kernel lacks mmsg.
    report.set(Feature::mmsg, config.mmsg, config.mmsg, config.mmsg ? "" : "disabled by configuration");
    try_gso(socket, config, report);
    try_gro(socket, config, report);
    try_ecn(socket, config, report);
    try_no_fragments(socket, config, report);
    try_error_reports(socket, config);
    try_busy_poll(socket, config, report);
    try_buffer(socket, {Feature::receive_buffer, SO_RCVBUF, SO_RCVBUFFORCE, "net.core.rmem_max"},
               config.receive_buffer_bytes, report);
    try_buffer(socket, {Feature::send_buffer, SO_SNDBUF, SO_SNDBUFFORCE, "net.core.wmem_max"}, config.send_buffer_bytes,
               report);
    try_groups(socket, config);
    // Counts packets that the kernel drops because the buffer is full. Without the option, that counter stays 0.
    set_option(socket, SOL_SOCKET, SO_RXQ_OVFL, on);
}

}  // namespace

namespace {

// A copy, so that the socket outlives this process's use of it.
Result<Descriptor> adopt(const UdpConfig& config, UdpReport& report) {
    Descriptor socket(fcntl(config.inherited, F_DUPFD_CLOEXEC, 0));
    if (!socket.valid()) return fail_with_errno(Operation::open, errno, to_string(config.local));
    if (fcntl(socket.number(), F_SETFL, O_NONBLOCK) != 0) {
        return fail_with_errno(Operation::configure, errno, to_string(config.local), "O_NONBLOCK");
    }
    try_features(socket, config, report);
    return socket;
}

}  // namespace

Result<Descriptor> open_udp(const UdpConfig& config, UdpReport& report) {
    if (config.inherited >= 0) return adopt(config, report);
    const std::string name = to_string(config.local);
    if (config.local.family() == wire::Family::none) {
        return fail(Operation::open, Reason::malformed, name, "a socket needs a local IPv4 or IPv6 address");
    }
    const int family = is_v6(config) ? AF_INET6 : AF_INET;
    Descriptor socket(::socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket.valid()) return fail_with_errno(Operation::open, errno, name);
    if (is_v6(config)) {
        if (const int code = set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, on); code != 0) {
            return fail_with_errno(Operation::configure, code, name, "IPV6_V6ONLY");
        }
    }
    if (config.reuse_port) {
        if (const int code = set_option(socket, SOL_SOCKET, SO_REUSEPORT, on); code != 0) {
            return fail_with_errno(Operation::configure, code, name, "SO_REUSEPORT");
        }
    }
    const bool is_group = config.local.is_multicast();
    if (is_group) {
        if (auto shared = share_group(socket, config); !shared) return Failure(shared.error());
    }
    try_features(socket, config, report);
    if (bind(socket.number(), config.local.data(), config.local.size()) != 0) {
        return fail_with_errno(Operation::bind, errno, name);
    }
    if (is_group) {
        // Otherwise the socket would also receive groups that other sockets of this host joined.
        set_option(socket, IPPROTO_IP, IP_MULTICAST_ALL, 0);
        const GroupMembership membership{.group = config.local, .member_at = config.member_at};
        if (auto joined = join_group(socket, membership); !joined) return Failure(joined.error());
    }
    return socket;
}

Result<void> join_group(const Descriptor& socket, const GroupMembership& membership) {
    return change_membership(socket, membership, IP_ADD_MEMBERSHIP, "IP_ADD_MEMBERSHIP");
}

Result<void> leave_group(const Descriptor& socket, const GroupMembership& membership) {
    return change_membership(socket, membership, IP_DROP_MEMBERSHIP, "IP_DROP_MEMBERSHIP");
}

Result<wire::Address> local_address(int socket) {
    sockaddr_in6 bytes{};
    socklen_t size = sizeof bytes;
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the generic type of the call
    auto* const generic = reinterpret_cast<sockaddr*>(&bytes);
    if (getsockname(socket, generic, &size) != 0) return fail_with_errno(Operation::open, errno);
    return wire::Address::from(generic, size);
}

}  // namespace atp::net
