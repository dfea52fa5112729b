// SPDX-License-Identifier: Apache-2.0
#include "sim/program.h"

namespace atp::sim {

void Program::forward(const Arrival& arrival, Time now) {
    const NodeId destination = shared_.network.pool().destination(arrival.packet);
    shared_.network.send(shared_.fabric.next_hop(arrival.to, destination), arrival.packet, arrival.congested, now);
}

}  // namespace atp::sim
