// SPDX-License-Identifier: Apache-2.0
#include "check/layout.h"

#include <utility>

namespace atp::check {
namespace {

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

}  // namespace

Layout::Layout(const Configuration& configuration)
    : membership_(membership_of(configuration)),
      jobs_(configuration.jobs),
      workers_(configuration.workers()),
      single_unit_(configuration.units.size() == 1 && !configuration.units[0].direct) {
    for (unsigned job = 0; job < jobs_; ++job) {
        for (unsigned rank = 0; rank < workers_; ++rank) {
            nodes_.push_back({NodeKind::worker, static_cast<std::uint8_t>(job), static_cast<std::uint8_t>(rank), 0});
        }
        nodes_.push_back({NodeKind::server, static_cast<std::uint8_t>(job), 0, 0});
    }
    const unsigned first_switch = size();
    const auto add_switch = [&](std::uint8_t level) {
        nodes_.push_back(
            {NodeKind::aggregating_switch, 0, static_cast<std::uint8_t>(nodes_.size() - first_switch), level});
        return size() - 1;
    };
    unit_switch_.resize(configuration.units.size());
    bool have_rack_switch = false;
    for (std::size_t u = 0; u < unit_switch_.size(); ++u) {
        if (configuration.units[u].direct) continue;
        const bool share = configuration.racks_share_switch && have_rack_switch;
        unit_switch_[u] = share ? size() - 1 : add_switch(0);
        have_rack_switch = true;
    }
    server_switch_ = single_unit_ ? unit_switch_[0] : add_switch(1);
    for (std::size_t u = 0; u < unit_switch_.size(); ++u) {
        if (configuration.units[u].direct) unit_switch_[u] = server_switch_;
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

unsigned Layout::up(unsigned from, unsigned job) const {
    const Node& node = nodes_[from];
    if (node.kind == NodeKind::worker) return unit_switch_[membership_.place(node.index).unit];
    return from == server_switch_ ? server(job) : server_switch_;
}

bool Layout::behind(unsigned at, unsigned unit) const { return at == server_switch_ || unit_switch_[unit] == at; }

bool Layout::meant(const Down& down, unsigned unit, unsigned member) const {
    const unsigned rank = membership_.rank_of(unit, member);
    if (down.worker != ATP_WORKER_ALL) return down.worker == rank;
    return (down.units >> unit & 1U) != 0 && (down.members == 0 || (down.members >> member & 1U) != 0);
}

void Layout::down(unsigned from, unsigned job, const Down& down, std::vector<unsigned>& to) const {
    to.clear();
    if (nodes_[from].kind == NodeKind::server) {
        to.push_back(server_switch_);
        return;
    }
    for (unsigned unit = 0; unit < membership_.units(); ++unit) {
        if (!behind(from, unit)) continue;
        for (unsigned member = 0; member < membership_.unit(unit).ranks.size(); ++member) {
            if (!meant(down, unit, member)) continue;
            const bool last_switch = unit_switch_[unit] == from;
            const unsigned next = last_switch ? worker(job, membership_.rank_of(unit, member)) : unit_switch_[unit];
            if (to.empty() || to.back() != next) to.push_back(next);
        }
    }
}

}  // namespace atp::check
