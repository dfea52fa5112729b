// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "control/branch.h"
#include "endpoint/breaks.h"
#include "endpoint/routing.h"
#include "protocol/variant.h"
#include "wire/packet.h"

namespace atp::endpoint {
inline namespace ATP_VARIANT {

// Children of a branch, for for_each_receiver(). A switch of level 0 has one unit, so a packet for any unit goes to all
// its members. A host of level 2 has one child, the switch below it.
class BranchReceivers {
  public:
    explicit BranchReceivers(const control::Branch& branch) : branch_(branch) {}

    template <class Visit>
    void visit_worker(std::uint16_t rank, Visit&& visit) const {
        if (branch_.level == ATP_LEVELS) {
            branch_.for_each_child(visit);
        } else if (const control::Branch::Child* const child = branch_.child_to(rank)) {
            visit(*child);
        }
    }
    template <class Visit>
    void visit_units(std::uint32_t units, std::uint32_t /*members*/, Visit&& visit) const {
        branch_.for_each_child(branch_.level == 1 ? branch_.mask & units : branch_.mask, visit);
    }
    // The members of a rack join one by one if the switch of the rack has no address.
    [[nodiscard]] bool is_switch(const control::Branch::Child& child) const {
        if (branch_.level != 1) return branch_.level != 0;
        return !child.unit.direct && branch_.racks[child.unit.unit] == nullptr;
    }
    // The child is a worker, and no switch in the path of its unit has made it join here one by one.
    [[nodiscard]] bool is_last_hop(const control::Branch::Child& child) const {
        return branch_.level == 0 || (branch_.level == 1 && child.unit.direct);
    }
    [[nodiscard]] bool is_worker(const control::Branch::Child& child, std::uint16_t rank) const {
        return !is_switch(child) && branch_.child_to(rank) == &child;
    }

  private:
    const control::Branch& branch_;
};

// A packet may come down from the parent only, and up from the child that is its worker or leads to it. The sum that a
// switch returns for a FLUSH names no worker. A server that this switch hosts sends no datagram. Requires at least
// ATP_HEADER_BYTES.
[[nodiscard]] inline bool comes_from_neighbour(std::span<const std::byte> packet, const control::Branch& branch,
                                               const wire::Address& from) {
    if (ATP_ROUTING_BREAK(takes_strangers)) return true;
    if (!wire::goes_up(wire::load_u8(packet.data() + ATP_OFFSET_TYPE))) return branch.up_data == from;
    bool found = false;
    const auto compare = [&](const control::Branch::Child& child) { found = found || child.address == from; };
    const std::uint16_t worker = wire::load_u16(packet.data() + ATP_OFFSET_WORKER);
    if (worker == ATP_WORKER_ALL) {
        branch.for_each_child(compare);
    } else {
        BranchReceivers(branch).visit_worker(worker, compare);
    }
    return found;
}

}  // namespace ATP_VARIANT
}  // namespace atp::endpoint
