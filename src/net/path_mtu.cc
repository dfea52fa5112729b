// SPDX-License-Identifier: Apache-2.0
#include "net/path_mtu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "net/clock.h"
#include "net/descriptor.h"
#include "net/udp_config.h"

namespace atp::net {
namespace {

constexpr std::uint32_t udp_header_bytes = 8;
constexpr std::uint32_t ipv4_header_bytes = 20;
constexpr std::uint32_t ipv6_header_bytes = 40;

}  // namespace

std::uint32_t payload_of_mtu(std::uint32_t mtu_bytes, Family family) {
    const std::uint32_t headers = udp_header_bytes + (family == Family::ipv6 ? ipv6_header_bytes : ipv4_header_bytes);
    return mtu_bytes <= headers ? 0 : std::min(mtu_bytes - headers, max_udp_payload_bytes);
}

Result<std::uint32_t> route_mtu(const Address& peer) {
    const bool v6 = peer.family() == Family::ipv6;
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

PathMtuSearch::PathMtuSearch(std::uint32_t floor_bytes, std::uint32_t ceiling_bytes, std::uint32_t step_bytes,
                             std::uint32_t attempts)
    : floor_bytes_(std::clamp(floor_bytes, 1U, std::max(ceiling_bytes, 1U))),
      step_bytes_(std::max(step_bytes, 1U)),
      attempts_(std::max(attempts, 1U)),
      too_long_bytes_(std::max(ceiling_bytes, floor_bytes_) + 1),
      probe_bytes_(too_long_bytes_ - 1) {}

void PathMtuSearch::handle_arrived(std::uint32_t bytes) {
    arrived_bytes_ = std::max(arrived_bytes_, bytes);
    too_long_bytes_ = std::max(too_long_bytes_, bytes + 1);  // it was an accident after all
    choose();
}

void PathMtuSearch::handle_lost(std::uint32_t bytes) {
    if (bytes != probe_bytes_) return;
    if (++losses_ == attempts_) handle_too_long(bytes);
}

void PathMtuSearch::handle_too_long(std::uint32_t bytes) {
    if (bytes <= arrived_bytes_) return;
    too_long_bytes_ = std::min(too_long_bytes_, bytes);
    choose();
}

void PathMtuSearch::choose() {
    const std::uint32_t before = probe_bytes_;
    if (too_long_bytes_ <= floor_bytes_) {
        probe_bytes_ = 0;
    } else if (arrived_bytes_ < floor_bytes_) {
        // Halving starts from a size that works: without one, the ceiling's loss says nothing of what is in between.
        probe_bytes_ = floor_bytes_;
    } else {
        const std::uint32_t gap = too_long_bytes_ - arrived_bytes_;
        probe_bytes_ = gap <= step_bytes_ ? 0 : arrived_bytes_ + gap / 2;
    }
    if (probe_bytes_ != before) losses_ = 0;
}

Result<std::uint32_t> discover_path_payload(const Address& peer, const Probe& probe) {
    const auto mtu = route_mtu(peer);
    if (!mtu) return Failure(mtu.error());
    const std::uint32_t ceiling = payload_of_mtu(*mtu, peer.family());
    PathMtuSearch search(std::min(least_path_payload_bytes, ceiling), ceiling);
    const protocol::Time start = now();
    while (!search.done()) {
        const std::uint32_t bytes = search.probe_bytes();
        const auto outcome = probe(bytes);
        if (!outcome) return Failure(outcome.error());
        switch (*outcome) {
            case ProbeOutcome::arrived: search.handle_arrived(bytes); break;
            case ProbeOutcome::lost: search.handle_lost(bytes); break;
            case ProbeOutcome::too_long: search.handle_too_long(bytes); break;
        }
    }
    if (search.found_bytes() == 0) {
        return Failure(Error{Operation::receive, Reason::timed_out, 0, to_string(peer), now() - start,
                             fmt::format("no probe was answered, neither of {} bytes nor of the least size", ceiling)});
    }
    return search.found_bytes();
}

}  // namespace atp::net
