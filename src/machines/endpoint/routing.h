// SPDX-License-Identifier: Apache-2.0
// Where a packet goes next. Daemons, ranks, the simulator and the model checker route with these functions; each
// describes its own tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "endpoint/breaks.h"
#include "protocol/variant.h"
#include "wire/packet.h"

namespace atp::endpoint {
// Address fields of a packet that goes down.
struct Downward {
    std::uint8_t type = ATP_TYPE_ACK;
    std::uint16_t worker = ATP_WORKER_ALL;  // the only receiver; ATP_WORKER_ALL: the members of `units`
    std::uint32_t units = 0;                // bits of bitmap1
    std::uint32_t members = 0;  // members of these units that the packet is about; the others may be skipped; 0: all
    std::uint16_t except = ATP_WORKER_ALL;  // this worker has sent the lanes of the packet and needs no copy
};

inline namespace ATP_VARIANT {

// The datagram is a packet for the server: a gradient or a PROBE. Otherwise it is for workers and switches, or no
// packet of this version.
[[nodiscard]] bool goes_up(std::span<const std::byte> datagram);

// The worker whose lanes an ACK carries; ATP_WORKER_ALL: it is a sum, or no ACK. Requires at least ATP_HEADER_BYTES.
[[nodiscard]] std::uint16_t only_sender_of(std::span<const std::byte> packet);
// Requires an ACK. True for a result that a switch in the path copies. It sends no more bytes than it saw of the job's
// gradients, so the words must not be wider than theirs. Short answers fill lists instead, and an owner needs no copy
// of its own sum.
[[nodiscard]] bool may_be_copied(std::span<const std::byte> packet);
// Requires at least ATP_HEADER_BYTES.
[[nodiscard]] Downward downward_of(std::span<const std::byte> packet);

// What is below one switch or server, for one job. A child is a worker, or a switch that leads to workers.
//   visit_worker(rank, visit)          visits the child that is this worker or leads to it, if there is one
//   visit_units(units, members, visit) visits each child that is, or leads to, one of these members, once
//   is_switch(child)                   the child aggregates
//   is_worker(child, rank)             the child is this worker itself
template <class Below>
concept Descendants = requires(const Below& below) {
    below.visit_worker(std::uint16_t{}, [](const auto&) {});
    below.visit_units(std::uint32_t{}, std::uint32_t{}, [](const auto&) {});
};

// Visits each child that receives the packet. Workers do not use a FLUSH, so only switches receive it.
template <Descendants Below, class Visit>
void for_each_receiver(const Downward& packet, const Below& below, Visit&& visit) {
    const auto visit_user = [&](const auto& child) {
        if (packet.type != ATP_TYPE_FLUSH || below.is_switch(child)) visit(child);
    };
    const bool astray = ATP_ROUTING_BREAK(results_to_other_racks) ||
                        (ATP_ROUTING_BREAK(flush_to_another_rack) && packet.type == ATP_TYPE_FLUSH);
    const std::uint32_t units = astray ? ~packet.units : packet.units;
    if (packet.worker != ATP_WORKER_ALL) {
        const unsigned another = ATP_ROUTING_BREAK(answer_to_another) ? 1 : 0;
        below.visit_worker(static_cast<std::uint16_t>(packet.worker ^ another), visit_user);
    } else {
        below.visit_units(units, packet.members, [&](const auto& child) {
            if (packet.except == ATP_WORKER_ALL || !below.is_worker(child, packet.except)) visit_user(child);
        });
    }
}

}  // namespace ATP_VARIANT
}  // namespace atp::endpoint
