// SPDX-License-Identifier: Apache-2.0
#include "plan/traffic.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "control/layout.h"
#include "protocol/channel.h"
#include "protocol/membership.h"
#include "sim/scenario.h"
#include "wire/format.h"

namespace atp::plan {
namespace {

using Kind = System::Kind;

constexpr std::uint32_t lanes_max = ATP_MAX_LANES;
const double overhead_bytes = sim::Scenario{}.overhead_bytes;
const double flush_bytes = ATP_HEADER_BYTES + overhead_bytes;
// Flows as in the simulator: 1,460 bytes and a header of 12 bytes per packet, one acknowledgement per two packets.
constexpr double segment_payload = 1460;
constexpr double segment_header = 12;
const double segment_wire = segment_payload + segment_header + overhead_bytes;
const double flow_wire = (segment_wire + (segment_header + overhead_bytes) / 2) / segment_payload;

// Time of a packet on a link.
double hop_s(std::int64_t bits_per_s, double wire_bytes, Duration delay) {
    return std::chrono::duration<double>(delay).count() + wire_bytes * 8 / static_cast<double>(bits_per_s);
}

Duration duration_of(double seconds) { return Duration(std::llround(seconds * 1e9)); }

// One job in its cluster.
class Placed {
  public:
    Placed(const Cluster& cluster, std::size_t job)
        : cluster_(cluster), job_(cluster.jobs[job]), last_(cluster.last_switch(job_)), workers_(job_.worker_count()) {}

    [[nodiscard]] const Job& job() const { return job_; }
    [[nodiscard]] std::size_t last() const { return last_; }
    [[nodiscard]] double workers() const { return workers_; }
    [[nodiscard]] double workers_at(std::size_t at) const { return job_.workers[at]; }
    [[nodiscard]] std::size_t switches() const { return cluster_.switches.size(); }
    // Whether the job uses the uplink of this switch.
    [[nodiscard]] bool climbs_from(std::size_t at) const { return at != last_ && job_.workers[at] != 0; }

    [[nodiscard]] double host_s(std::size_t at, double wire_bytes) const {
        return hop_s(cluster_.switches[at].host_bits_per_s, wire_bytes, cluster_.switches[at].delay);
    }
    [[nodiscard]] double uplink_s(std::size_t at, double wire_bytes) const {
        return hop_s(cluster_.switches[at].uplink_bits_per_s, wire_bytes, cluster_.switches[at].delay);
    }
    // Time of a packet from the farthest worker to the last switch.
    [[nodiscard]] double climb_s(double wire_bytes) const {
        double longest = 0;
        for (std::size_t at = 0; at < switches(); ++at) {
            if (job_.workers[at] == 0) continue;
            longest = std::max(longest, host_s(at, wire_bytes) + (at == last_ ? 0 : uplink_s(at, wire_bytes)));
        }
        return longest;
    }
    // Time that a packet waits in a queue of queue_bytes at the slowest port of the switch.
    [[nodiscard]] double queueing_s(std::size_t at) const {
        const Switch& one = cluster_.switches[at];
        const std::int64_t slowest =
            climbs_from(at) ? std::min(one.host_bits_per_s, one.uplink_bits_per_s) : one.host_bits_per_s;
        return static_cast<double>(one.queue_bytes) * 8 / static_cast<double>(slowest);
    }
    // Time of a packet from the last switch to a server on another host.
    [[nodiscard]] double server_s(double wire_bytes) const {
        return job_.server == ServerPlacement::colocated ? climb_s(wire_bytes) : host_s(last_, wire_bytes);
    }

  private:
    const Cluster& cluster_;
    const Job& job_;
    std::size_t last_;
    double workers_;
};

bool server_is_on_switch(const Placed& placed, const std::vector<bool>& aggregates) {
    return placed.job().server == ServerPlacement::on_switch && aggregates[placed.last()];
}

// ---------------------------------------------------------------------------------------------------------------- ATP

// Gradients per fragment that leave a switch towards the server. The share `added` of the fragments gets an aggregator
// and leaves as one gradient.
double leaving(double entering, bool aggregates, double added) {
    return aggregates ? added + (1 - added) * entering : entering;
}

class AtpTraffic {
  public:
    AtpTraffic(const Network& network, std::size_t job, const std::vector<bool>& aggregates,
               std::span<const double> added)
        : network_(network),
          placed_(network.cluster(), job),
          job_(job),
          aggregates_(aggregates),
          added_(added),
          stream_(stream_of(network.cluster(), job, aggregates)),
          wire_(stream_.wire_bytes / stream_.payload_bytes) {}

    Traffic compute() {
        traffic_.loads.assign(network_.links().size(), 0);
        traffic_.flow = wire_;
        traffic_.latency = stream_.round_trip;
        double addable = placed_.workers_at(placed_.last());
        double passed_on = 0;
        for (std::size_t at = 0; at < placed_.switches(); ++at) {
            if (!placed_.climbs_from(at)) continue;
            passed_on += missed_at_leaf(at);
            addable += leaving_leaf(at) - missed_at_leaf(at);
        }
        to_server_ = passed_on + leaving(addable, aggregates_[placed_.last()], added_[placed_.last()]);
        // No aggregator above the racks takes a partial sum, so the server asks whether one holds that of the last
        // rack.
        if (!aggregates_[placed_.last()] && racks() > 1) to_server_ += flush_bytes / stream_.wire_bytes;
        load_uplinks();
        load_hosts();
        const bool beside = server_is_on_switch(placed_, aggregates_);
        if (!beside && placed_.job().server != ServerPlacement::colocated) load(network_.server_link(job_), to_server_);
        load_card(placed_.last(), addable + passed_on + (beside ? 0 : to_server_));
        return std::move(traffic_);
    }

  private:
    void load(std::size_t link, double copies) { traffic_.loads[link] += wire_ * copies; }

    [[nodiscard]] double leaving_leaf(std::size_t at) const {
        return leaving(placed_.workers_at(at), aggregates_[at], added_[at]);
    }

    // If a packet finds no aggregator at its leaf, the server adds it. The switches above forward it.
    [[nodiscard]] double missed_at_leaf(std::size_t at) const {
        return aggregates_[at] ? (1 - added_[at]) * placed_.workers_at(at) : 0;
    }

    [[nodiscard]] unsigned racks() const {
        unsigned racks = 0;
        for (std::size_t at = 0; at < placed_.switches(); ++at) {
            racks += placed_.climbs_from(at) && aggregates_[at] ? 1U : 0U;
        }
        return racks;
    }

    void load_uplinks() {
        for (std::size_t at = 0; at < placed_.switches(); ++at) {
            if (!placed_.climbs_from(at)) continue;
            load(network_.uplink(at), leaving_leaf(at) + to_server_ * network_.servers_below(at, job_));
            load_card(at, placed_.workers_at(at) + leaving_leaf(at));
        }
    }

    void load_hosts() {
        for (const HostClass& host : network_.hosts()) {
            const Tenancy& tenancy = host.tenancies[job_];
            if (tenancy.worker) load(host.link, 1 + tenancy.servers * to_server_);
        }
    }

    void load_card(std::size_t at, double copies) {
        const bool has_card = network_.cluster().switches[at].card_bits_per_s != 0;
        if (has_card && aggregates_[at]) load(network_.card(at), copies);
    }

    const Network& network_;
    Placed placed_;
    std::size_t job_;
    const std::vector<bool>& aggregates_;
    std::span<const double> added_;
    Stream stream_;
    double wire_;
    double to_server_ = 0;
    Traffic traffic_;
};

// -------------------------------------------------------------------------------------------------------------- Others

Traffic begin_flows(const Network& network) {
    Traffic traffic;
    traffic.loads.assign(network.links().size(), 0);
    traffic.flow = flow_wire;
    return traffic;
}

Traffic one_server(const Network& network, std::size_t job, const Placed& placed) {
    Traffic traffic = begin_flows(network);
    traffic.latency = duration_of(2 * (placed.climb_s(segment_wire) + placed.server_s(segment_wire)));
    traffic.whole_buckets = true;
    const bool colocated = placed.job().server == ServerPlacement::colocated;
    std::size_t server_at = placed.last();
    for (const HostClass& host : network.hosts()) {
        const Tenancy& tenancy = host.tenancies[job];
        if (!tenancy.worker) continue;
        traffic.loads[host.link] = flow_wire * (tenancy.only_server ? placed.workers() - 1 : 1);
        if (tenancy.only_server) server_at = host.at;
    }
    if (!colocated) traffic.loads[network.server_link(job)] = flow_wire * placed.workers();
    for (std::size_t at = 0; at < placed.switches(); ++at) {
        if (!placed.climbs_from(at)) continue;
        const double here = placed.workers_at(at);
        traffic.loads[network.uplink(at)] = flow_wire * (at == server_at ? placed.workers() - here : here);
    }
    return traffic;
}

Traffic many_servers(const Network& network, std::size_t job, const Placed& placed) {
    Traffic traffic = begin_flows(network);
    const double workers = placed.workers();
    traffic.flow /= workers;
    traffic.latency = duration_of(4 * placed.climb_s(segment_wire));
    for (const HostClass& host : network.hosts()) {
        if (host.tenancies[job].worker) traffic.loads[host.link] = flow_wire * 2 * (workers - 1) / workers;
    }
    for (std::size_t at = 0; at < placed.switches(); ++at) {
        if (!placed.climbs_from(at)) continue;
        const double here = placed.workers_at(at);
        traffic.loads[network.uplink(at)] = flow_wire * 2 * here * (workers - here) / workers;
    }
    return traffic;
}

// One rank for each worker, ordered by switch.
std::optional<control::Layout> layout_on_hosts(const Cluster& cluster, std::size_t job,
                                               const std::vector<bool>& aggregates) {
    std::vector<control::LayoutRank> ranks;
    for (std::size_t at = 0; at < cluster.switches.size(); ++at) {
        const Switch& one = cluster.switches[at];
        const std::uint64_t leaf = one.parent && aggregates[at] ? at + 1 : 0;
        ranks.insert(ranks.end(), cluster.jobs[job].workers[at],
                     {.leaf = leaf,
                      .root = leaf,
                      .serves = true,
                      .host = {},
                      .rack = one.parent ? one.name : std::string(),
                      .host_bits_per_s = static_cast<double>(one.host_bits_per_s),
                      .uplink_bits_per_s = static_cast<double>(one.uplink_bits_per_s)});
    }
    return control::best_layout(ranks);
}

Traffic on_hosts(const Network& network, std::size_t job, const Placed& placed, const std::vector<bool>& aggregates) {
    const Cluster& cluster = network.cluster();
    const Stream stream = stream_of(cluster, job, aggregates);
    Traffic traffic;
    traffic.loads.assign(network.links().size(), 0);
    traffic.flow = stream.wire_bytes / stream.payload_bytes;
    traffic.latency = duration_of(4 * placed.climb_s(stream.wire_bytes));
    std::vector<std::size_t> switches;  // by rank
    for (std::size_t at = 0; at < placed.switches(); ++at) {
        switches.insert(switches.end(), static_cast<std::size_t>(placed.workers_at(at)), at);
    }
    std::vector<double> of_hosts(placed.switches());
    const auto layout = layout_on_hosts(cluster, job, aggregates);
    for (const control::LinkLoad& load : layout->loads) {
        const std::size_t at = switches[load.rank];
        double& sum = load.is_uplink ? traffic.loads[network.uplink(at)] : of_hosts[at];
        sum = std::max(sum, traffic.flow * load.tensors);
    }
    for (const HostClass& host : network.hosts()) {
        if (host.tenancies[job].worker) traffic.loads[host.link] = of_hosts[host.at];
    }
    for (std::size_t at = 0; at < placed.switches(); ++at) {
        const bool adds = aggregates[at] && layout->kind != control::LayoutKind::hosts && placed.workers_at(at) != 0;
        const bool has_card = cluster.switches[at].card_bits_per_s != 0;
        if (adds && has_card) traffic.loads[network.card(at)] = traffic.flow * (placed.workers_at(at) + 1);
    }
    return traffic;
}

// Ranks are ordered by switch, so the ring crosses each uplink once in each direction.
Traffic ring(const Network& network, std::size_t job, const Placed& placed) {
    Traffic traffic = begin_flows(network);
    const double workers = placed.workers();
    traffic.flow *= 2 * (workers - 1) / workers;
    for (const HostClass& host : network.hosts()) {
        if (host.tenancies[job].worker) traffic.loads[host.link] = traffic.flow;
    }
    double once_round_s = 0;
    for (std::size_t at = 0; at < placed.switches(); ++at) {
        if (placed.workers_at(at) != 0) once_round_s += 2 * placed.workers_at(at) * placed.host_s(at, segment_wire);
        if (!placed.climbs_from(at)) continue;
        once_round_s += 2 * placed.uplink_s(at, segment_wire);
        traffic.loads[network.uplink(at)] = traffic.flow;
    }
    traffic.latency = duration_of(2 * (workers - 1) / workers * once_round_s);
    return traffic;
}

// The units of the job. If the switch of a worker aggregates and is below the last switch, its workers form one unit.
// Every other worker joins at the last switch.
std::vector<protocol::Unit> units_of(const Placed& placed, const std::vector<bool>& aggregates) {
    std::vector<protocol::Unit> units;
    std::vector<std::uint16_t> at_last;
    std::uint16_t next = 0;
    for (std::size_t at = 0; at < placed.switches(); ++at) {
        std::vector<std::uint16_t> ranks(placed.job().workers[at]);
        for (std::uint16_t& rank : ranks) rank = next++;
        if (placed.climbs_from(at) && aggregates[at]) {
            units.push_back({.ranks = std::move(ranks)});
        } else {
            at_last.insert(at_last.end(), ranks.begin(), ranks.end());
        }
    }
    if (units.empty()) return {{.ranks = std::move(at_last)}};
    for (const std::uint16_t rank : at_last) units.push_back({.ranks = {rank}, .direct = true});
    return units;
}

}  // namespace

double Stream::in_flight(double bytes_per_s) const {
    const std::chrono::duration<double> delay = round_trip + queueing;
    return std::min(window, bytes_per_s / payload_bytes * delay.count());
}

double Stream::window_bytes_per_s() const {
    return window * payload_bytes / std::chrono::duration<double>(round_trip).count();
}

bool can_serve(const Cluster& cluster, std::size_t job, const std::vector<bool>& aggregates) {
    for (std::size_t at = 0; at < cluster.switches.size(); ++at) {
        if (!aggregates[at] || !cluster.serves(at, cluster.jobs[job])) continue;
        return protocol::Membership::make(units_of(Placed(cluster, job), aggregates)).has_value();
    }
    return false;
}

bool is_possible(const Cluster& cluster, std::size_t job, const System& system) {
    if (system.kind == Kind::hosts) return layout_on_hosts(cluster, job, system.aggregates).has_value();
    return system.kind != Kind::atp || can_serve(cluster, job, system.aggregates);
}

Stream stream_of(const Cluster& cluster, std::size_t job, const std::vector<bool>& aggregates) {
    const Placed placed(cluster, job);
    Stream stream{.lanes = lanes_max};
    double queueing_s = 0;
    for (std::size_t at = 0; at < cluster.switches.size(); ++at) {
        if (!cluster.serves(at, placed.job())) continue;
        queueing_s = std::max(queueing_s, placed.queueing_s(at));
        if (aggregates[at]) stream.lanes = std::min(stream.lanes, cluster.switches[at].lanes);
    }
    stream.payload_bytes = stream.lanes * double{ATP_LANE_BYTES};
    stream.wire_bytes = ATP_HEADER_BYTES + stream.payload_bytes + overhead_bytes;
    const double server_s = server_is_on_switch(placed, aggregates) ? 0 : placed.server_s(stream.wire_bytes);
    stream.round_trip = duration_of(2 * (placed.climb_s(stream.wire_bytes) + server_s));
    stream.window = placed.job().channels * static_cast<double>(protocol::usual_window(stream.lanes));
    stream.queueing = duration_of(queueing_s);
    return stream;
}

Traffic traffic_of(const Network& network, std::size_t job, const System& system, std::span<const double> added) {
    switch (system.kind) {
        case Kind::atp: return AtpTraffic(network, job, system.aggregates, added).compute();
        case Kind::server: return one_server(network, job, Placed(network.cluster(), job));
        case Kind::servers: return many_servers(network, job, Placed(network.cluster(), job));
        case Kind::hosts: return on_hosts(network, job, Placed(network.cluster(), job), system.aggregates);
        case Kind::ring: return ring(network, job, Placed(network.cluster(), job));
    }
    return {};
}

}  // namespace atp::plan
