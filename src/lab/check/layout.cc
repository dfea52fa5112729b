// SPDX-License-Identifier: Apache-2.0
#include "check/layout.h"

#include <optional>
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
      single_unit_(configuration.units.size() == 1 && !configuration.units[0].direct),
      in_path_(configuration.switch_in_path) {
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
    if (!single_unit_) {
        server_switch_ = add_switch(1);
    } else {
        server_switch_ = in_path_ ? add_switch(0) : unit_switch_[0];
    }
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

unsigned Layout::first_switch_of(unsigned rank) const {
    if (in_path_ && rank == 0) return server_switch_;
    return unit_switch_[membership_.place(static_cast<std::uint16_t>(rank)).unit];
}

unsigned Layout::up(unsigned from, unsigned job) const {
    const Node& node = nodes_[from];
    if (node.kind == NodeKind::worker) return first_switch_of(node.index);
    return from == server_switch_ ? server(job) : server_switch_;
}

// Nodes below one node of a job, for endpoint::for_each_receiver(). Below a server is the switch next to it.
class Layout::Receivers {
  public:
    Receivers(const Layout& layout, unsigned from, unsigned job) : layout_(layout), from_(from), job_(job) {}

    template <class Visit>
    void visit_worker(std::uint16_t rank, Visit&& visit) const {
        if (rank < layout_.workers_ && leads_to(rank)) visit(next_to(rank));
    }
    // A request concerns the workers that it names. The others ignore it, so the checker skips them.
    template <class Visit>
    void visit_units(std::uint32_t units, std::uint32_t members, Visit&& visit) const {
        std::optional<unsigned> last;
        for (unsigned unit = 0; unit < layout_.membership_.units(); ++unit) {
            if ((units >> unit & 1U) == 0) continue;
            for (unsigned member = 0; member < layout_.membership_.unit(unit).ranks.size(); ++member) {
                const unsigned rank = layout_.membership_.rank_of(unit, member);
                if (!leads_to(rank) || (members != 0 && (members >> member & 1U) == 0)) continue;
                const unsigned next = next_to(rank);
                if (std::exchange(last, next) != next) visit(next);
            }
        }
    }
    [[nodiscard]] bool is_switch(unsigned node) const { return layout_.node(node).kind != NodeKind::worker; }
    [[nodiscard]] bool is_worker(unsigned node, std::uint16_t rank) const {
        return !is_switch(node) && rank < layout_.workers_ && next_to(rank) == node;
    }

  private:
    [[nodiscard]] bool is_server() const { return layout_.node(from_).kind == NodeKind::server; }
    [[nodiscard]] bool leads_to(unsigned rank) const {
        return is_server() || from_ == layout_.server_switch_ || layout_.first_switch_of(rank) == from_;
    }
    [[nodiscard]] unsigned next_to(unsigned rank) const {
        if (is_server()) return layout_.server_switch_;
        const unsigned at = layout_.first_switch_of(rank);
        return at == from_ ? layout_.worker(job_, rank) : at;
    }

    const Layout& layout_;
    unsigned from_;
    unsigned job_;
};

void Layout::down(unsigned from, unsigned job, const endpoint::Downward& packet, std::vector<unsigned>& to) const {
    to.clear();
    endpoint::for_each_receiver(packet, Receivers(*this, from, job), [&](unsigned node) { to.push_back(node); });
}

}  // namespace atp::check
