// SPDX-License-Identifier: Apache-2.0
#include "control/path_mtu_search.h"

#include <algorithm>

#include "wire/datagram.h"
#include "wire/format.h"

namespace atp::control {
namespace {

constexpr std::uint32_t udp_header_bytes = 8;
constexpr std::uint32_t ipv4_header_bytes = 20;
constexpr std::uint32_t ipv6_header_bytes = 40;

}  // namespace

std::uint32_t payload_of_mtu(std::uint32_t mtu_bytes, wire::Family family) {
    const std::uint32_t headers =
        udp_header_bytes + (family == wire::Family::ipv6 ? ipv6_header_bytes : ipv4_header_bytes);
    return mtu_bytes <= headers ? 0 : std::min(mtu_bytes - headers, wire::max_udp_payload_bytes);
}

std::uint32_t lanes_of_payload(std::uint32_t payload_bytes) {
    return (std::clamp(payload_bytes, ATP_HEADER_BYTES, ATP_MAX_PACKET_BYTES) - ATP_HEADER_BYTES) / ATP_LANE_BYTES;
}

PathMtuSearch::PathMtuSearch(std::uint32_t least_bytes, std::uint32_t ceiling_bytes, std::uint32_t step_bytes,
                             std::uint32_t attempts)
    : least_bytes_(std::clamp(least_bytes, 1U, std::max(ceiling_bytes, 1U))),
      step_bytes_(std::max(step_bytes, 1U)),
      attempts_(std::max(attempts, 1U)),
      too_long_bytes_(std::max(ceiling_bytes, least_bytes_) + 1),
      probe_bytes_(too_long_bytes_ - 1) {}

void PathMtuSearch::handle_arrived(std::uint32_t bytes) {
    arrived_bytes_ = std::max(arrived_bytes_, bytes);
    too_long_bytes_ = std::max(too_long_bytes_, bytes + 1);  // earlier losses had another cause
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
    if (too_long_bytes_ <= least_bytes_) {
        probe_bytes_ = 0;
    } else if (arrived_bytes_ < least_bytes_) {
        // To halve the interval, the search needs a lower end that arrives.
        probe_bytes_ = least_bytes_;
    } else {
        const std::uint32_t gap = too_long_bytes_ - arrived_bytes_;
        probe_bytes_ = gap <= step_bytes_ ? 0 : arrived_bytes_ + gap / 2;
    }
    if (probe_bytes_ != before) losses_ = 0;
}

}  // namespace atp::control
