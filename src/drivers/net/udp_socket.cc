// SPDX-License-Identifier: Apache-2.0
#include "net/udp_socket.h"

#include <utility>

#include "net/error_queue.h"
#include "net/route_mtu.h"
#include "net/udp_options.h"

namespace atp::net {

Result<std::unique_ptr<UdpSocket>> UdpSocket::open(const UdpConfig& config) {
    UdpReport report;
    auto descriptor = open_udp(config, report);
    if (!descriptor) return Failure(std::move(descriptor).error());
    const auto local = local_address(*descriptor);
    if (!local) return Failure(local.error());
    // The constructor is private, so make_unique cannot call it.
    return std::unique_ptr<UdpSocket>(new UdpSocket(config, *std::move(descriptor), std::move(report), *local));
}

UdpSocket::UdpSocket(const UdpConfig& config, Descriptor descriptor, UdpReport report, const wire::Address& local)
    : descriptor_(std::move(descriptor)),
      local_(local),
      member_at_(config.member_at),
      report_(std::move(report)),
      sender_(descriptor_.number(), config, report_, counters_),
      receiver_(descriptor_.number(), config, report_, counters_) {}

std::size_t UdpSocket::take_errors(std::span<wire::SendError> errors) {
    std::size_t count = 0;
    if (errors.empty()) return count;
    if (auto refused = sender_.take_too_long()) {
        refused->mtu = route_mtu(refused->to).value_or(0);
        errors[count++] = *refused;
    }
    while (count < errors.size()) {
        const auto queued = take_queued_error(descriptor_.number());
        if (!queued) break;
        errors[count++] = *queued;
    }
    return count;
}

Result<void> UdpSocket::rejoin_group() {
    const GroupMembership membership{.group = local_, .member_at = member_at_};
    if (auto left = leave_group(descriptor_, membership); !left) return left;
    return join_group(descriptor_, membership);
}

}  // namespace atp::net
