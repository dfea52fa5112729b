// SPDX-License-Identifier: Apache-2.0
// The network as a graph, and the position of each job in it: its hosts, the switch of each level, and the routes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/membership.h"
#include "sim/ids.h"
#include "sim/scenario.h"

namespace atp::sim {

struct FabricNode {
    std::string name;
    bool is_switch = false;
};

// One direction of a cable.
struct FabricLink {
    enum class Kind : std::uint8_t {
        from_host,  // packets queue at the host, which drops none
        to_host,
        trunk,     // between switches
        internal,  // between a switch and the server on its host: takes no time
    };
    NodeId from = 0;
    NodeId to = 0;
    Kind kind = Kind::trunk;
};

// The network as one job sees it. The root of its tree is the switch next to the server's host.
struct Site {
    explicit Site(protocol::Membership members) : membership(std::move(members)) {}

    protocol::Membership membership;
    std::vector<NodeId> worker_hosts;  // by rank
    NodeId server_host = 0;
    std::vector<int> levels;                     // by switch: its level in the tree of the job; -1: it only forwards
    std::vector<LinkId> up;                      // by node: towards the server
    std::vector<std::vector<LinkId>> to_worker;  // by switch and rank; no_link if the worker is not below this switch
    std::vector<std::vector<std::vector<LinkId>>> to_unit;  // by switch and unit
};

// Switches are nodes 0 .. switches - 1.
struct Fabric {
    unsigned switches = 0;
    std::vector<FabricNode> nodes;
    std::vector<FabricLink> links;
    std::vector<Site> sites;                  // by job
    std::vector<NodeId> background_hosts;     // by background flow
    std::vector<LinkId> uplinks;              // by host; no_link for switches
    std::vector<std::vector<LinkId>> routes;  // by switch and destination

    // The link towards node `to`.
    [[nodiscard]] LinkId next_hop(NodeId at, NodeId to) const { return at < switches ? routes[at][to] : uplinks[at]; }
};

// Requires problem_of(scenario) to be empty.
[[nodiscard]] Fabric build_fabric(const Scenario& scenario);

[[nodiscard]] unsigned count_switches(const TopologySpec& spec);
// The units of the job's workers; nothing if there are more units or members than bits in a bitmap.
[[nodiscard]] std::optional<std::vector<protocol::Unit>> units_of(const Scenario& scenario, unsigned job);

}  // namespace atp::sim
