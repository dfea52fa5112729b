// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <utility>

namespace atp::sim {
namespace {

using Shape = TopologySpec::Shape;

unsigned switch_of_worker(const TopologySpec& spec, unsigned rank) {
    switch (spec.shape) {
        case Shape::star: return 0;
        case Shape::racks: return rank / spec.second;
        case Shape::dumbbell: return rank < spec.first ? 0 : 1;
        case Shape::fig9: return rank / 2;
    }
    return 0;
}

// The switch next to a server that is not on a worker's host: the last switch of every shape.
unsigned main_switch(const TopologySpec& spec) { return count_switches(spec) - 1; }

// Colocated servers use the hosts of the workers in turn.
unsigned rank_of_server(const Scenario& scenario, unsigned job) { return job % scenario.workers_of(job); }

unsigned root_switch(const Scenario& scenario, unsigned job) {
    return scenario.server == ServerPlacement::colocated
               ? switch_of_worker(scenario.topology, rank_of_server(scenario, job))
               : main_switch(scenario.topology);
}

bool all_beside_the_server(const Scenario& scenario, unsigned job) {
    for (unsigned rank = 0; rank < scenario.workers_of(job); ++rank) {
        if (switch_of_worker(scenario.topology, rank) != root_switch(scenario, job)) return false;
    }
    return true;
}

class Builder {
  public:
    explicit Builder(const Scenario& scenario) : scenario_(scenario) {}

    Fabric build() {
        fabric_.switches = count_switches(scenario_.topology);
        for (unsigned i = 0; i < fabric_.switches; ++i) add_node(fmt::format("s{}", i), true);
        // Every shape is a tree: the last switch connects to all others.
        for (NodeId i = 0; i + 1 < fabric_.switches; ++i) {
            add_cable(i, fabric_.switches - 1, FabricLink::Kind::trunk, FabricLink::Kind::trunk);
        }
        for (unsigned job = 0; job < scenario_.jobs; ++job) add_site(job);
        for (std::size_t i = 0; i < scenario_.background.size(); ++i) {
            fabric_.background_hosts.push_back(add_host(fmt::format("b{}", i), main_switch(scenario_.topology)));
        }
        route();
        return std::move(fabric_);
    }

  private:
    NodeId add_node(std::string name, bool is_switch) {
        fabric_.nodes.push_back({.name = std::move(name), .is_switch = is_switch});
        return static_cast<NodeId>(fabric_.nodes.size() - 1);
    }

    void add_cable(NodeId a, NodeId b, FabricLink::Kind a_to_b, FabricLink::Kind b_to_a) {
        cables_[{a, b}] = static_cast<LinkId>(fabric_.links.size());
        fabric_.links.push_back({.from = a, .to = b, .kind = a_to_b});
        cables_[{b, a}] = static_cast<LinkId>(fabric_.links.size());
        fabric_.links.push_back({.from = b, .to = a, .kind = b_to_a});
    }

    NodeId add_host(std::string name, NodeId at_switch) {
        const NodeId host = add_node(std::move(name), false);
        switch_of_host_[host] = at_switch;
        add_cable(host, at_switch, FabricLink::Kind::from_host, FabricLink::Kind::to_host);
        return host;
    }

    NodeId add_worker_host(std::string name, unsigned rank) {
        return add_host(std::move(name), switch_of_worker(scenario_.topology, rank));
    }

    // The host on which worker `rank` of each job runs. The first calls must have the ranks in ascending order.
    NodeId shared_host(unsigned rank) {
        if (rank == shared_hosts_.size()) shared_hosts_.push_back(add_worker_host(fmt::format("h{}", rank), rank));
        return shared_hosts_[rank];
    }

    void add_site(unsigned job) {
        Site site;
        site.membership =
            std::make_shared<const protocol::Membership>(*protocol::Membership::make(*units_of(scenario_, job)));
        for (unsigned rank = 0; rank < scenario_.workers_of(job); ++rank) {
            site.worker_hosts.push_back(scenario_.placement == Placement::shared
                                            ? shared_host(rank)
                                            : add_worker_host(fmt::format("h{}.{}", job, rank), rank));
        }
        site.server_host = server_host(site, job);
        if (scenario_.system_of(job).kind == System::Kind::atp) plan_tree(site, job);
        fabric_.sites.push_back(std::move(site));
    }

    NodeId server_host(const Site& site, unsigned job) {
        const ServerPlacement place = scenario_.server;
        if (place == ServerPlacement::colocated) return site.worker_hosts[rank_of_server(scenario_, job)];
        if (place == ServerPlacement::on_switch) return main_switch(scenario_.topology);
        if (place == ServerPlacement::shared && job != 0) return fabric_.sites.front().server_host;
        return add_host(fmt::format("p{}", job), main_switch(scenario_.topology));
    }

    void plan_tree(Site& site, unsigned job) const {
        const bool one_rack = all_beside_the_server(scenario_, job);
        const SwitchPlace host{.node = site.server_host, .only_serves = true};
        const bool apart = scenario_.server != ServerPlacement::on_switch;
        for (std::uint16_t rank = 0; rank < site.membership->workers(); ++rank) {
            const bool adds = scenario_.aggregation != Aggregation::nowhere;
            site.entrances.push_back(adds ? SwitchPlace{.node = switch_of_worker(scenario_.topology, rank)} : host);
            site.levels.push_back(adds ? site.membership->place(rank).hop : (one_rack ? 0 : 1));
        }
        if (scenario_.in_path) return plan_path(site, host);
        if (scenario_.aggregation == Aggregation::nowhere) return;
        if (scenario_.aggregation == Aggregation::racks && !one_rack) {
            site.root = host;
            return;
        }
        if (!one_rack) site.root = {.node = root_switch(scenario_, job)};
        if (scenario_.server == ServerPlacement::colocated) {
            site.server_rank = rank_of_server(scenario_, job);
        } else if (apart) {
            site.server = host;
        }
    }

    // All ranks join the switch, or the host, of the server.
    void plan_path(Site& site, const SwitchPlace& host) const {
        const bool on_switch = scenario_.server == ServerPlacement::on_switch;
        const SwitchPlace last = on_switch ? SwitchPlace{.node = site.server_host} : host;
        const bool one_unit = std::has_single_bit(site.membership->all_units());
        site.entrances.assign(site.membership->workers(), last);
        site.levels.assign(site.membership->workers(), one_unit ? 0 : 1);
        if (!one_unit) site.root = last;
    }

    [[nodiscard]] LinkId link(NodeId from, NodeId to) const { return cables_.at({from, to}); }

    // The next switch towards `to`, in a tree of depth one.
    [[nodiscard]] NodeId next_switch(NodeId at_switch, NodeId to) const {
        const NodeId center = fabric_.switches - 1;
        return at_switch == center ? to : center;
    }

    void route() {
        fabric_.uplinks.assign(fabric_.nodes.size(), no_link);
        fabric_.routes.assign(fabric_.switches, std::vector<LinkId>(fabric_.nodes.size(), no_link));
        for (NodeId node = 0; node < fabric_.nodes.size(); ++node) {
            const bool is_switch = node < fabric_.switches;
            const NodeId leaf = is_switch ? node : switch_of_host_.at(node);
            if (!is_switch) fabric_.uplinks[node] = link(node, leaf);
            for (NodeId s = 0; s < fabric_.switches; ++s) {
                if (s != leaf) fabric_.routes[s][node] = link(s, next_switch(s, leaf));
            }
            if (!is_switch) fabric_.routes[leaf][node] = link(leaf, node);
        }
    }

    const Scenario& scenario_;
    Fabric fabric_;
    std::vector<NodeId> shared_hosts_;  // by rank
    std::map<NodeId, NodeId> switch_of_host_;
    std::map<std::pair<NodeId, NodeId>, LinkId> cables_;
};

}  // namespace

std::optional<std::uint8_t> Fabric::path_level(NodeId at, const Scenario& scenario) const {
    const bool is_last = at + 1 == switches;
    if (!scenario.in_path || (is_last && scenario.server == ServerPlacement::on_switch)) return std::nullopt;
    return is_last && switches > 1 ? 1 : 0;
}

Fabric build_fabric(const Scenario& scenario) { return Builder(scenario).build(); }

unsigned count_switches(const TopologySpec& spec) {
    switch (spec.shape) {
        case Shape::star: return 1;
        case Shape::racks: return spec.first + 1;
        case Shape::dumbbell: return 2;
        case Shape::fig9: return 3;
    }
    return 0;
}

std::optional<std::vector<protocol::Unit>> units_of(const Scenario& scenario, unsigned job) {
    const unsigned root = root_switch(scenario, job);
    // If all workers are next to the server, or only level 0 aggregates, the workers at the root are a rack like any
    // other. Otherwise each of them is a separate unit (ATP §3.2.2), which causes the factor of Figure 9.
    const bool rack_at_root = all_beside_the_server(scenario, job) || scenario.aggregation == Aggregation::racks;
    std::vector<protocol::Unit> units;
    std::map<unsigned, std::size_t> unit_of_switch;
    for (unsigned rank = 0; rank < scenario.workers_of(job); ++rank) {
        const unsigned at = switch_of_worker(scenario.topology, rank);
        if (at == root && !rack_at_root) {
            units.push_back({.ranks = {static_cast<std::uint16_t>(rank)}, .direct = true});
            continue;
        }
        const auto [entry, fresh] = unit_of_switch.try_emplace(at, units.size());
        if (fresh) units.emplace_back();
        units[entry->second].ranks.push_back(static_cast<std::uint16_t>(rank));
    }
    if (!protocol::Membership::make(units)) return std::nullopt;
    return units;
}

}  // namespace atp::sim
