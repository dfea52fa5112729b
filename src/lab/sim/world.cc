// SPDX-License-Identifier: Apache-2.0
#include "sim/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace atp::sim {
namespace {

using namespace std::string_view_literals;

// One switch serves all SwitchML jobs. It has the sum of their slots.
switchml::SwitchConfig switchml_switch_config(const Scenario& scenario) {
    switchml::SwitchConfig config{.slots = 0, .lanes = scenario.switchml.lanes};
    for (unsigned job = 0; job < scenario.jobs; ++job) {
        if (scenario.system_of(job).kind != System::Kind::switchml) continue;
        config.slots += scenario.switchml_config(job).slots();
    }
    return config;
}

}  // namespace

World::World(const Scenario& scenario, Trace* trace)
    : scenario_(scenario),
      trace_(trace),
      fabric_(build_fabric(scenario)),
      truth_(scenario, fabric_),
      network_(scenario, fabric_, events_, programs_, trace),
      switchml_(switchml_switch_config(scenario)),
      nodes_(fabric_.nodes.size()),
      unfinished_jobs_(scenario.jobs) {
    Shared shared{.scenario = scenario_,
                  .fabric = fabric_,
                  .events = events_,
                  .network = network_,
                  .truth = truth_,
                  .processes = nullptr,
                  .switchml = switchml_,
                  .trace = trace_,
                  .failures = failures_,
                  .unfinished_jobs = unfinished_jobs_};
    auto processes = std::make_unique<Processes>(shared, ProgramId{0});
    shared.processes = processes_ = processes.get();
    programs_.push_back(std::move(processes));
    for (unsigned index = 0; index < scenario.jobs; ++index) {
        auto job = make_job(shared, static_cast<ProgramId>(programs_.size()), index);
        jobs_.push_back(job.get());
        programs_.push_back(std::move(job));
    }
    for (unsigned index = 0; index < scenario.background.size(); ++index) {
        auto flow = std::make_unique<Background>(shared, static_cast<ProgramId>(programs_.size()), index);
        background_.push_back(flow.get());
        programs_.push_back(std::move(flow));
    }
    if (scenario.sample) {
        sampler_.emplace(*scenario.sample);
        events_.push(Time(*scenario.sample), Event::Kind::sample, 0);
    }
    for (std::uint32_t i = 0; i < scenario.faults.outages.size(); ++i) {
        events_.push(scenario.faults.outages[i].at, Event::Kind::fault, i);
    }
    const auto outages = static_cast<std::uint32_t>(scenario.faults.outages.size());
    if (truth_.is_known() && outages == 1) events_.push(truth_.fails_by(), Event::Kind::fault, outages);
}

bool World::all_finished() const { return unfinished_jobs_ == 0; }

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
        case Event::Kind::wake: wake(event); break;
        case Event::Kind::fault: begin_outage(event.target); break;
        case Event::Kind::restart: end_outage(event.target); break;
        case Event::Kind::sample: sample(); break;
        default: break;
    }
    return true;
}

void World::wake(const Event& event) {
    Program& program = *programs_[event.program];
    const NodeId node = program.node_of(event.target);
    if (node == no_node || nodes_[node].paused_until <= now_) {
        program.wake(event.target, now_);
        return;
    }
    Event later = event;
    later.time = nodes_[node].paused_until;
    later.order = events_.next_order();
    events_.push(later);
}

void World::arrive(const Event& event) {
    const Arrival arrival = network_.take_arrival(event);
    const NodeId at = arrival.to;
    const Node& node = nodes_[at];
    PacketPool& pool = network_.pool();
    if (node.paused_until > now_) {
        network_.defer(arrival, node.paused_until);
        return;
    }
    if (node.down) {
        network_.notify(at, "down", arrival.packet, now_);
        pool.release(arrival.packet);
        return;
    }
    Program& owner = *programs_[pool.owner(arrival.packet)];
    if (at < fabric_.switches) {
        owner.forward(arrival, now_);
        return;
    }
    network_.notify(at, arrival.congested ? "received marked"sv : "received"sv, arrival.packet, now_);
    owner.receive(arrival, now_);
    pool.release(arrival.packet);
}

void World::sample() {
    take_sample();
    if (!all_finished()) events_.push(now_ + *scenario_.sample, Event::Kind::sample, 0);
}

void World::take_sample() {
    Sampler::Reading reading;
    for (const Job* job : jobs_) {
        reading.job_bytes.push_back(job->delivered_bytes());
        reading.job_added_in_network.push_back(job->added_in_network());
        reading.job_added_at_server.push_back(job->added_at_server());
    }
    for (const Background* flow : background_) reading.background_bytes.push_back(flow->report().flows.delivered_bytes);
    for (LinkId id = 0; id < network_.links(); ++id) {
        reading.link_bytes.push_back(network_.link(id).counters().bytes);
    }
    sampler_->take(std::move(reading));
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

namespace {

std::string_view verb_of(Outage::Kind kind) {
    switch (kind) {
        case Outage::Kind::crash: return "crashes";
        case Outage::Kind::pause: return "pauses";
        case Outage::Kind::kill: return "is killed";
        case Outage::Kind::silence: return "falls silent";
        case Outage::Kind::leave: return "leaves";
        case Outage::Kind::cut: return "is cut off";
        case Outage::Kind::cut_up: return "is cut off upwards";
        case Outage::Kind::cut_down: return "is cut off downwards";
    }
    return "fails";
}

}  // namespace

void World::begin_outage(std::uint32_t index) {
    if (index >= scenario_.faults.outages.size()) return check_failures();
    const Outage& outage = scenario_.faults.outages[index];
    const NodeId node = node_of(outage);
    if (trace_ != nullptr) trace_->note(now_, fabric_.nodes[node].name, verb_of(outage.kind));
    switch (outage.kind) {
        case Outage::Kind::crash: crash(outage); break;
        case Outage::Kind::pause:
            nodes_[node].paused_until = std::max(nodes_[node].paused_until, now_ + outage.lasts);
            return;
        case Outage::Kind::kill: processes_->crash_switch({.node = node}, outage.lasts, now_); break;
        case Outage::Kind::silence: silence(node, outage.lasts); break;
        case Outage::Kind::leave: jobs_[outage.job]->leave_worker(outage.index, now_); return;
        case Outage::Kind::cut:
        case Outage::Kind::cut_up:
        case Outage::Kind::cut_down: cut(outage, true); break;
    }
    events_.push(now_ + outage.lasts, Event::Kind::restart, index);
}

void World::crash(const Outage& outage) {
    if (outage.node == Outage::Node::worker) return jobs_[outage.job]->crash_worker(outage.index, outage.lasts, now_);
    if (outage.node == Outage::Node::server) return jobs_[outage.job]->crash_server(outage.lasts, now_);
    const NodeId node = node_of(outage);
    nodes_[node].down = true;
    for (const bool only_serves : {false, true}) {
        processes_->crash_switch({.node = node, .only_serves = only_serves}, outage.lasts, now_);
    }
}

void World::silence(NodeId node, Duration lasts) {
    nodes_[node].down = true;
    for (std::size_t job = 0; job < jobs_.size(); ++job) {
        const std::vector<NodeId>& hosts = fabric_.sites[job].worker_hosts;
        const auto at = std::ranges::find(hosts, node);
        if (at != hosts.end()) jobs_[job]->crash_worker(static_cast<unsigned>(at - hosts.begin()), lasts, now_);
    }
    processes_->crash_switch({.node = node, .only_serves = true}, lasts, now_);
}

// The two directions of a cable are neighbours in the table of links.
void World::cut(const Outage& outage, bool is_cut) {
    const NodeId node = node_of(outage);
    const LinkId up = fabric_.next_hop(node, fabric_.switches - 1);
    if (outage.kind != Outage::Kind::cut_down) network_.cut(up, is_cut);
    if (outage.kind != Outage::Kind::cut_up) network_.cut(up ^ 1U, is_cut);
}

void World::end_outage(std::uint32_t index) {
    const Outage& outage = scenario_.faults.outages[index];
    const NodeId node = node_of(outage);
    nodes_[node].down = false;
    if (outage.kind >= Outage::Kind::cut) cut(outage, false);
    if (trace_ != nullptr) trace_->note(now_, fabric_.nodes[node].name, "works again");
}

// Each rank that was ready before the outage reads an error in time.
void World::check_failures() {
    const Outage& outage = scenario_.faults.outages.front();
    if (outage.at + outage.lasts < now_) return;
    for (unsigned job = 0; job < jobs_.size(); ++job) {
        if (truth_.stops(job)) jobs_[job]->check_failed(outage);
    }
}

}  // namespace atp::sim
