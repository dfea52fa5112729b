// SPDX-License-Identifier: Apache-2.0
// Injected faults of routing, which the model checker and the swarm of the simulator must find. Only
// atp_endpoint_breakable is compiled with them: see protocol/breaks.h.
#pragma once

// X(name, hazard, what the faulty machine does)
#define ATP_ROUTING_BREAKS(X)                                                               \
    X(result_goes_up, 18, "a rank takes a result for a packet to the server that it hosts") \
    X(answer_to_another, 8, "a switch sends a packet for one worker to another child")      \
    X(results_to_other_racks, 17, "a packet for racks goes to the others")                  \
    X(flush_to_another_rack, 17, "a FLUSH goes to the racks that it is not for")            \
    X(takes_strangers, 35, "a switch takes a packet from an address that is no neighbour")

#ifdef ATP_BREAKABLE
namespace atp::endpoint {
enum class RoutingBreak : unsigned {
    none = 0,
#define ATP_ROUTING_BREAK_ENUM(name, hazard, what) name,
    ATP_ROUTING_BREAKS(ATP_ROUTING_BREAK_ENUM)
#undef ATP_ROUTING_BREAK_ENUM
};
extern thread_local RoutingBreak active_routing_break;
}  // namespace atp::endpoint
#define ATP_ROUTING_BREAK(name) (::atp::endpoint::active_routing_break == ::atp::endpoint::RoutingBreak::name)
#else
#define ATP_ROUTING_BREAK(name) false
#endif
