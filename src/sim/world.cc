// SPDX-License-Identifier: Apache-2.0
#include "sim/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "wire/packet.h"

namespace atp::sim {

World::World(const Scenario& scenario, Trace* trace)
    : scenario_(scenario),
      trace_(trace),
      fabric_(build_fabric(scenario)),
      network_(scenario, fabric_, events_, trace),
      nodes_(fabric_.nodes.size()) {
    const protocol::SwitchConfig config{
        .aggregators = scenario.aggregators, .lanes = scenario.lanes, .jobs = scenario.jobs, .ageing = scenario.ageing};
    switches_.reserve(fabric_.switches);
    for (unsigned i = 0; i < fabric_.switches; ++i) switches_.emplace_back(config);
    const Shared shared{.scenario = scenario_,
                        .events = events_,
                        .network = network_,
                        .switches = switches_,
                        .trace = trace_,
                        .failures = failures_};
    for (unsigned job = 0; job < scenario.jobs; ++job) {
        const Site& site = fabric_.sites[job];
        jobs_.push_back(std::make_unique<Job>(shared, job, site));
        rank_at_.emplace_back(fabric_.nodes.size(), -1);
        for (std::size_t rank = 0; rank < site.worker_hosts.size(); ++rank) {
            rank_at_.back()[site.worker_hosts[rank]] = static_cast<std::int32_t>(rank);
        }
        events_.push(jobs_.back()->start(), Event::Kind::form, job);
    }
    for (std::uint32_t i = 0; i < scenario.faults.outages.size(); ++i) {
        events_.push(scenario.faults.outages[i].at, Event::Kind::fault, i);
    }
}

bool World::all_finished() const {
    return std::ranges::all_of(jobs_, [](const auto& job) { return job->finished(); });
}

double World::share_done() const {
    double done = 0;
    for (const auto& job : jobs_) done += job->share_done();
    return done / static_cast<double>(jobs_.size());
}

bool World::step() {
    if (events_.empty() || events_.top().time > scenario_.time_limit) return false;
    ++steps_;
    const Event event = events_.top();
    now_ = event.time;
    if (event.kind == Event::Kind::path || event.kind == Event::Kind::loose) {
        arrive(event);
        return true;
    }
    events_.pop();
    switch (event.kind) {
        case Event::Kind::timer: {
            Job& job = *jobs_[event.target / jobs_.front()->endpoints()];
            const std::uint32_t endpoint = event.target % job.endpoints();
            const NodeId host = job.host_of_endpoint(endpoint);
            if (!delayed_by_pause(host, event.kind, event.target)) job.wake(endpoint, now_);
            break;
        }
        case Event::Kind::resume: {
            const unsigned workers = scenario_.workers();
            Job& job = *jobs_[event.target / workers];
            const NodeId host = job.site().worker_hosts[event.target % workers];
            if (!delayed_by_pause(host, event.kind, event.target)) job.resume(event.target % workers, now_);
            break;
        }
        case Event::Kind::form:
            jobs_[event.target]->form(now_);
            network_.replay_kept(now_);
            break;
        case Event::Kind::fault: begin_outage(event.target); break;
        case Event::Kind::restart: end_outage(event.target); break;
        default: break;
    }
    return true;
}

bool World::delayed_by_pause(NodeId node, Event::Kind kind, std::uint32_t target) {
    if (nodes_[node].paused_until <= now_) return false;
    events_.push(nodes_[node].paused_until, kind, target);
    return true;
}

// ----------------------------------------------------------------------------------------------------------- Packets

namespace {

// Single fields of a packet that its sender has encoded: routing needs few of them.
std::uint8_t type_of(const std::byte* packet) { return wire::load_u8(packet + ATP_OFFSET_TYPE); }
std::uint32_t job_number_of(const std::byte* packet) { return wire::load_u32(packet + ATP_OFFSET_JOB); }
bool goes_up(const std::byte* packet) {
    return type_of(packet) == ATP_TYPE_GRADIENT || type_of(packet) == ATP_TYPE_PROBE;
}

}  // namespace

void World::arrive(const Event& event) {
    const Arrival arrival = network_.take_arrival(event);
    const NodeId at = arrival.to;
    const Node& node = nodes_[at];
    if (node.paused_until > now_) {
        network_.defer(arrival, node.paused_until);
    } else if (node.down) {
        tell(at, "down", arrival.packet);
        network_.pool().release(arrival.packet);
    } else if (at < fabric_.switches) {
        arrive_at_switch(arrival, at);
    } else {
        arrive_at_host(arrival, at);
    }
}

void World::arrive_at_switch(const Arrival& arrival, NodeId at) {
    PacketPool& pool = network_.pool();
    const std::byte* received = pool.data(arrival.packet);
    const Job* job = job_of(job_number_of(received));
    if (job == nullptr) {
        pool.release(arrival.packet);
        return;
    }
    const Site& site = job->site();
    if (site.levels[at] < 0) {
        route(arrival.packet, arrival.congested, at, site, goes_up(received));
        return;
    }
    const PacketId packet = pool.exclusive(arrival.packet);
    protocol::Parcel parcel{.data = pool.data(packet),
                            .size = pool.size(packet),
                            .capacity = static_cast<std::uint32_t>(pool.capacity()),
                            .congested = arrival.congested,
                            .verdict = {}};
    switches_[at].handle_packet(parcel, now_);
    pool.resize(packet, parcel.size);
    const protocol::Verdict& verdict = parcel.verdict;
    tell(at, event_name(verdict.event), packet);
    if (verdict.route == protocol::Route::drop) {
        pool.release(packet);
        return;
    }
    // The mark stays on the packet: a worker that gets it knows that the congestion was on its own way down (hazard
    // 32).
    route(packet, arrival.congested, at, site, verdict.route == protocol::Route::up);
}

void World::route(PacketId packet, bool congested, NodeId at, const Site& site, bool up) {
    if (up) {
        network_.send(site.up[at], packet, congested, now_);
    } else {
        route_down(packet, congested, at, site);
    }
}

// To one worker, or one copy for each link that leads to a unit that is meant. No worker has a use for a FLUSH.
void World::route_down(PacketId packet, bool congested, NodeId at, const Site& site) {
    const std::byte* bytes = network_.pool().data(packet);
    const bool stops_at_switches = type_of(bytes) == ATP_TYPE_FLUSH;
    const auto send_copy = [&](LinkId link) {
        if (stops_at_switches && network_.leads_to_host(link)) return;
        network_.pool().retain(packet);
        network_.send(link, packet, congested, now_);
    };
    const std::uint16_t worker = wire::load_u16(bytes + ATP_OFFSET_WORKER);
    if (worker != ATP_WORKER_ALL) {
        const bool known = worker < site.to_worker[at].size() && site.to_worker[at][worker] != no_link;
        if (known) send_copy(site.to_worker[at][worker]);
    } else {
        const std::uint64_t copy = network_.new_copy();
        for (std::uint32_t units = wire::load_u32(bytes + ATP_OFFSET_BITMAP1); units != 0; units &= units - 1) {
            const auto unit = static_cast<unsigned>(std::countr_zero(units));
            if (unit >= site.to_unit[at].size()) break;
            for (const LinkId link : site.to_unit[at][unit]) {
                if (network_.first_of_copy(link, copy)) send_copy(link);
            }
        }
    }
    network_.pool().release(packet);
}

void World::arrive_at_host(const Arrival& arrival, NodeId at) {
    PacketPool& pool = network_.pool();
    const std::span<std::byte> bytes = pool.bytes(arrival.packet);
    tell(at, arrival.congested ? "received marked" : "received", arrival.packet);
    if (Job* job = job_of(job_number_of(bytes.data()))) {
        const unsigned channel = wire::load_u16(bytes.data() + ATP_OFFSET_CHANNEL);
        const bool for_server = goes_up(bytes.data());
        const std::int32_t rank = rank_at_[job->index()][at];
        if (for_server && job->site().server_host == at) {
            job->deliver_to_server(channel, bytes, arrival.congested, now_);
        } else if (!for_server && rank >= 0) {
            job->deliver_to_worker(channel, static_cast<unsigned>(rank), bytes, arrival.congested, now_);
        }
    }
    pool.release(arrival.packet);
}

// ----------------------------------------------------------------------------------------------------------- Outages

NodeId World::node_of(const Outage& outage) const {
    switch (outage.node) {
        case Outage::Node::fabric_switch: return outage.index;
        case Outage::Node::worker: return fabric_.sites[outage.job].worker_hosts[outage.index];
        case Outage::Node::server: return fabric_.sites[outage.job].server_host;
    }
    return 0;
}

void World::begin_outage(std::uint32_t index) {
    const Outage& outage = scenario_.faults.outages[index];
    const NodeId node = node_of(outage);
    if (trace_ != nullptr) {
        trace_->note(now_, fabric_.nodes[node].name, outage.kind == Outage::Kind::pause ? "pauses" : "crashes");
    }
    if (outage.kind == Outage::Kind::pause) {
        nodes_[node].paused_until = std::max(nodes_[node].paused_until, now_ + outage.lasts);
    } else if (outage.node == Outage::Node::worker) {
        jobs_[outage.job]->crash_worker(outage.index, outage.lasts, now_);
    } else if (outage.node == Outage::Node::server) {
        jobs_[outage.job]->crash_server(outage.lasts, now_);
    } else {
        nodes_[node].down = true;
        switches_[node].clear();
        events_.push(now_ + outage.lasts, Event::Kind::restart, index);
    }
}

void World::end_outage(std::uint32_t index) {
    const NodeId node = node_of(scenario_.faults.outages[index]);
    nodes_[node].down = false;
    if (trace_ != nullptr) trace_->note(now_, fabric_.nodes[node].name, "restarts empty");
}

}  // namespace atp::sim
