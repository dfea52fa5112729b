// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "control/branch.h"
#include "endpoint/routing.h"
#include "protocol/variant.h"

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

}  // namespace ATP_VARIANT
}  // namespace atp::endpoint
