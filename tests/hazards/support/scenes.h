// SPDX-License-Identifier: Apache-2.0
// Helpers shared by the scripts of several hazards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "support/network.h"

namespace atp::testing {

// Elements of a fragment in the networks of this file. A fragment has four lanes, one of which is the audit lane.
inline constexpr std::size_t elements_each = 3;

inline NetworkConfig network_of(protocol::Membership membership) {
    NetworkConfig config;
    config.membership = std::move(membership);
    return config;
}
inline NetworkConfig star(unsigned workers) { return network_of(*protocol::Membership::star(workers)); }
inline NetworkConfig racks(unsigned count, unsigned workers) {
    return network_of(*protocol::Membership::racks(count, workers));
}
// A rack of three workers, and worker 3 at the switch of level 1.
inline NetworkConfig rack_and_direct() {
    return network_of(*protocol::Membership::make(
        {protocol::Unit{.ranks = {0, 1, 2}}, protocol::Unit{.ranks = {3}, .direct = true}}));
}

// A distinct value for each worker and element, so small that the sum over 32 workers does not overflow.
inline float own_value(unsigned rank, std::size_t element) {
    return static_cast<float>(rank + 1) / 256.0F + static_cast<float>(element % 64) / 4096.0F;
}

inline bool is_gradient_of(const Flight& flight, unsigned rank) {
    return flight.from == worker_node(rank) && flight.is(ATP_TYPE_GRADIENT);
}
inline bool is_gradient_of(const Flight& flight, unsigned rank, std::uint32_t seq) {
    return is_gradient_of(flight, rank) && flight.header().seq == seq;
}

inline bool is_ack_of_a_first_sending(const Flight& flight) {
    return flight.is(ATP_TYPE_ACK) && flight.header().sending == 0;
}

// The first gradient that worker `rank` sent.
inline Flight first_sending(const Network& network, unsigned rank) {
    for (const Flight& flight : network.delivered()) {
        if (is_gradient_of(flight, rank)) return flight;
    }
    throw std::logic_error("nothing was sent");
}

inline Flight with_flag(Flight flight, atp_flag flag) {
    atp_header header = flight.header();
    header.flags = static_cast<std::uint16_t>(header.flags | flag);
    wire::encode_header(header, flight.bytes);
    return flight;
}
inline Flight as_resend(Flight flight) { return with_flag(std::move(flight), ATP_FLAG_RESEND); }

// The FLUSH with which the server fetches the partial sum of level `hop`. The fragment is that of `gradient`.
inline Bytes flush_of(const Flight& gradient, std::uint8_t hop) {
    atp_header header = gradient.header();
    header.type = ATP_TYPE_FLUSH;
    header.lanes = ATP_DTYPE_NONE;
    header.flags = 0;
    header.hop = hop;
    header.worker = ATP_WORKER_ALL;
    if (hop == 1) header.bitmap0 = 0;
    return make_packet(header);
}

inline std::uint64_t events(const protocol::Switch& machine, atp_switch_event event) {
    return machine.counters().events[event];
}

}  // namespace atp::testing
