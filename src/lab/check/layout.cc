// SPDX-License-Identifier: Apache-2.0
#include "check/layout.h"

#include <algorithm>
#include <utility>

namespace atp::check {
namespace {

constexpr unsigned no_switch = ~0U;

protocol::Membership membership_of(const Configuration& configuration) {
    std::vector<protocol::Unit> units;
    std::uint16_t rank = 0;
    for (const UnitLayout& layout : configuration.units) {
        protocol::Unit unit{.ranks = {}, .direct = layout.direct};
        for (unsigned i = 0; i < layout.workers; ++i) unit.ranks.push_back(rank++);
        units.push_back(std::move(unit));
    }
    return protocol::Membership::make(std::move(units)).value();
}

// Only a hosted server holds ACKs back for lists. Behind switches in the path, one more process would be one too many.
bool has_server_processes(const Configuration& configuration) {
    return configuration.protocol == Protocol::atp && configuration.ack_lists == 0 && configuration.pipelines == 0 &&
           !configuration.switch_in_path && !configuration.racks_share_switch;
}

}  // namespace

Layout::Layout(const Configuration& configuration)
    : membership_(membership_of(configuration)),
      jobs_(configuration.jobs),
      workers_(configuration.workers()),
      has_server_processes_(check::has_server_processes(configuration)) {
    for (unsigned number = 0; number < jobs_; ++number) {
        const auto job = static_cast<std::uint8_t>(number);
        for (unsigned rank = 0; rank < workers_; ++rank) {
            nodes_.push_back({.kind = NodeKind::worker, .job = job, .index = static_cast<std::uint8_t>(rank)});
        }
        if (has_server_processes_) nodes_.push_back({.kind = NodeKind::server, .job = job});
    }
    add_switches(configuration);
}

void Layout::add_switches(const Configuration& configuration) {
    const unsigned first = size();
    const auto add = [&](std::uint8_t level, bool in_path, std::uint8_t pipelines) {
        const unsigned number = size() - first;
        const bool is_pipeline = (pipelines >> number & 1U) != 0;
        nodes_.push_back({.kind = NodeKind::aggregating_switch,
                          .index = static_cast<std::uint8_t>(number),
                          .level = level,
                          .in_path = in_path || is_pipeline,
                          .is_pipeline = is_pipeline});
        return size() - 1;
    };
    std::vector<unsigned> racks;  // by unit
    for (const UnitLayout& unit : configuration.units) {
        const bool shares = configuration.racks_share_switch && !racks.empty() && racks.front() != no_switch;
        const bool in_path = configuration.switch_in_path || configuration.racks_share_switch;
        racks.push_back(unit.direct ? no_switch : shares ? racks.front() : add(0, in_path, configuration.pipelines));
    }
    const bool single = racks.size() == 1 && racks.front() != no_switch;
    top_ = single ? racks.front() : add(1, false, configuration.pipelines);
    std::vector<unsigned> path_to_top;
    if (nodes_[top_].in_path) {
        if (!single) path_to_top.push_back(top_);
        top_ = add(nodes_[top_].level, false, 0);
    }
    add_routes(configuration, racks, path_to_top);
}

void Layout::add_routes(const Configuration& configuration, const std::vector<unsigned>& racks,
                        const std::vector<unsigned>& path_to_top) {
    for (unsigned at = 0; at < size(); ++at) {
        Route route{.address = wire::Address::parse("10.0.0." + std::to_string(at + 1) + ":4790").value(),
                    .above = top_,
                    .path = path_to_top};
        const Node& node = nodes_[at];
        if (node.kind == NodeKind::worker) {
            const unsigned rack = racks[membership_.place(node.index).unit];
            const bool passes = rack != no_switch && nodes_[rack].in_path;
            if (rack != no_switch && !passes) route.above = rack, route.path.clear();
            if (passes && !(configuration.switch_in_path && node.index == 0))
                route.path.insert(route.path.begin(), rack);
        } else if (node.kind == NodeKind::server || at == top_) {
            route.above = at, route.path.clear();
        }
        routes_.push_back(std::move(route));
    }
}

std::string Layout::name(unsigned at) const {
    const Node& node = nodes_[at];
    const std::string job = jobs_ > 1 ? "job" + std::to_string(node.job) + "." : "";
    switch (node.kind) {
        case NodeKind::worker: return job + "worker" + std::to_string(node.index);
        case NodeKind::server: return job + "server";
        default: return "switch" + std::to_string(node.index);
    }
}

unsigned Layout::node_at(const wire::Address& address) const {
    const auto found = std::ranges::find(routes_, address, &Route::address);
    return static_cast<unsigned>(found - routes_.begin());
}

unsigned Layout::next(unsigned at, unsigned from, unsigned to) const {
    const bool goes_up = routes_[from].above == to;
    if (!goes_up && routes_[to].above != from) return to;
    const std::vector<unsigned>& path = routes_[goes_up ? from : to].path;
    const auto here = std::ranges::find(path, at);
    if (goes_up) {
        const auto following = at == from ? path.begin() : here + 1;
        return following == path.end() ? to : *following;
    }
    const auto before = at == from ? path.end() : here;
    return before == path.begin() ? to : *(before - 1);
}

}  // namespace atp::check
