// SPDX-License-Identifier: Apache-2.0
#include "net/error_queue.h"

#include <linux/errqueue.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>

#include "net/ancillary_data.h"

namespace atp::net {
namespace {

// Reports of one call: a queue that grows as fast as it is read must not keep the caller.
constexpr int most_reports = 64;
constexpr std::size_t control_bytes = CMSG_SPACE(sizeof(sock_extended_err) + sizeof(sockaddr_in6)) + 256;

std::optional<wire::SendError::Kind> kind_of(const sock_extended_err& report) {
    using Kind = wire::SendError::Kind;
    if (report.ee_origin == SO_EE_ORIGIN_ICMP && report.ee_type == ICMP_DEST_UNREACH) {
        if (report.ee_code == ICMP_PORT_UNREACH) return Kind::port_unreachable;
        if (report.ee_code == ICMP_FRAG_NEEDED) return Kind::too_long;
    }
    if (report.ee_origin == SO_EE_ORIGIN_ICMP6) {
        if (report.ee_type == ICMP6_DST_UNREACH && report.ee_code == ICMP6_DST_UNREACH_NOPORT) {
            return Kind::port_unreachable;
        }
        if (report.ee_type == ICMP6_PACKET_TOO_BIG) return Kind::too_long;
    }
    return std::nullopt;
}

std::optional<sock_extended_err> report_in(const msghdr& header) {
    std::optional<sock_extended_err> report;
    for_each_control(header, [&](int level, int type, const ControlValue& value) {
        const bool v4 = level == IPPROTO_IP && type == IP_RECVERR;
        const bool v6 = level == IPPROTO_IPV6 && type == IPV6_RECVERR;
        if (v4 || v6) report = value.as<sock_extended_err>();
    });
    return report;
}

}  // namespace

std::optional<wire::SendError> take_queued_error(int descriptor) {
    for (int i = 0; i < most_reports; ++i) {
        wire::SendError error{.by_network = true};
        sockaddr_in6 name{};
        iovec part{error.quoted.data(), error.quoted.size()};
        alignas(cmsghdr) std::array<std::byte, control_bytes> control;
        msghdr header{};
        header.msg_name = &name;
        header.msg_namelen = sizeof name;
        header.msg_iov = &part;
        header.msg_iovlen = 1;
        header.msg_control = control.data();
        header.msg_controllen = control.size();
        const ssize_t bytes = recvmsg(descriptor, &header, MSG_ERRQUEUE | MSG_DONTWAIT);
        if (bytes < 0 && errno == EINTR) continue;
        if (bytes < 0) return std::nullopt;
        const auto report = report_in(header);
        const auto kind = report ? kind_of(*report) : std::nullopt;
        if (!kind) continue;
        error.kind = *kind;
        error.quoted_bytes = std::min(static_cast<std::size_t>(bytes), error.quoted.size());
        if (*kind == wire::SendError::Kind::too_long) error.mtu = report->ee_info;
        // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the generic type of the call
        error.to = wire::Address::from(reinterpret_cast<const sockaddr*>(&name), header.msg_namelen);
        return error;
    }
    return std::nullopt;
}

bool may_concern_earlier_packet(int code) {
    switch (code) {
        case EACCES:
        case ECONNREFUSED:
        case EHOSTDOWN:
        case EHOSTUNREACH:
        case EMSGSIZE:
        case ENETUNREACH:
        case ENONET:
        case ENOPROTOOPT:
        case EOPNOTSUPP:
        case EPROTO: return true;
        default: return false;
    }
}

}  // namespace atp::net
