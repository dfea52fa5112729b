// SPDX-License-Identifier: Apache-2.0
// The network as a graph, and the position of each job in it: its hosts, and the switches that its ranks join.
#pragma once

#include <cstdint>
#include <memory>
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
        trunk,  // between switches
    };
    NodeId from = 0;
    NodeId to = 0;
    Kind kind = Kind::trunk;
};

// A process with the machines of a switch.
struct SwitchPlace {
    NodeId node = no_node;  // no_node: none
    // It has no aggregators, so it adds nothing in the network: where a server runs on a host of its own, and where
    // switches do not add.
    bool only_serves = false;

    [[nodiscard]] bool exists() const { return node != no_node; }
    friend bool operator==(const SwitchPlace&, const SwitchPlace&) = default;
};

// The network as one job sees it.
struct Site {
    std::shared_ptr<const protocol::Membership> membership;
    std::vector<NodeId> worker_hosts;  // by rank
    NodeId server_host = 0;            // a switch, if the server runs on it
    // The tree of an ATP job.
    std::vector<SwitchPlace> entrances;   // by rank: the switch that it joins
    std::vector<std::uint8_t> levels;     // by rank: of that switch
    SwitchPlace root;                     // of level 1, above all switches of level 0; none: a single rack
    SwitchPlace server;                   // apart from the last switch; none: that switch hosts it, or a rank
    std::optional<unsigned> server_rank;  // whose process hosts the server

    [[nodiscard]] SwitchPlace host_of_server() const {
        if (server.exists()) return server;
        return root.exists() ? root : entrances.front();
    }
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
    [[nodiscard]] NodeId switch_of(NodeId host) const { return links[uplinks[host]].to; }
    // At which a switch in the path aggregates; nullopt: the switch is none.
    [[nodiscard]] std::optional<std::uint8_t> path_level(NodeId at, const Scenario& scenario) const;
};

// Requires problem_of(scenario) to be empty.
[[nodiscard]] Fabric build_fabric(const Scenario& scenario);

[[nodiscard]] unsigned count_switches(const TopologySpec& spec);
// The units of the job's workers; nothing if there are more units or members than bits in a bitmap.
[[nodiscard]] std::optional<std::vector<protocol::Unit>> units_of(const Scenario& scenario, unsigned job);

}  // namespace atp::sim
