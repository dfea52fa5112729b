// SPDX-License-Identifier: Apache-2.0
#include "sim/systems/flow_job.h"

#include <fmt/format.h>

namespace atp::sim {
namespace {

constexpr std::uint32_t flow_start = 0;
constexpr std::uint32_t first_flow_event = 1;

}  // namespace

FlowJob::FlowJob(const Shared& shared, ProgramId id, unsigned index)
    : Job(shared, id, shared.scenario.cost_of(shared.scenario.system_of(index).transport), index) {
    wake_system_at(report_.started, flow_start);
}

std::uint32_t FlowJob::add_flow(NodeId from, NodeId to) {
    const auto number = static_cast<std::uint32_t>(flows_.size());
    flows_.emplace_back(shared_, id_, ranks() + first_flow_event + number, Flow::Ends{.from = from, .to = to},
                        shared_.scenario.system_of(index_).transport);
    return number;
}

// The last buckets belong to the layers that the next forward pass needs first. With `priority` they are sent first.
void FlowJob::send(std::uint32_t flow, const Message& message, Time now) {
    const auto buckets = static_cast<std::uint32_t>(workload_.buckets.size());
    flows_[flow].send(message, shared_.scenario.priority ? buckets - message.label : 0, now);
}

void FlowJob::receive(const Arrival& arrival, Time now) {
    const std::uint32_t event = Flow::number_of(shared_.network.pool().bytes(arrival.packet)) - ranks();
    Flow& flow = flows_[event - first_flow_event];
    flow.handle_packet(arrival, now);
    while (const auto message = flow.poll_received()) on_message(event - first_flow_event, *message, now);
}

void FlowJob::on_system_event(std::uint32_t event, Time now) {
    if (event == flow_start) {
        for (unsigned rank = 0; rank < ranks(); ++rank) begin(rank, 0, now);
    } else {
        flows_[event - first_flow_event].on_wake(now);
    }
}

NodeId FlowJob::node_of_system_event(std::uint32_t event) const {
    return event == flow_start ? no_node : flows_[event - first_flow_event].ends().from;
}

JobReport FlowJob::report() const {
    JobReport report = Job::report();
    for (const Flow& flow : flows_) add_counters(flow_fields, flow.counters(), report.flows);
    return report;
}

std::string FlowJob::whereabouts() const {
    std::string text;
    for (unsigned rank = 0; rank < ranks(); ++rank) {
        text += fmt::format(" rank {}: iteration {};", rank, training_.iterations_done(rank));
    }
    std::uint64_t waiting = 0;
    for (const Flow& flow : flows_) waiting += flow.waiting_messages();
    return text + fmt::format(" {} messages wait", waiting);
}

}  // namespace atp::sim
