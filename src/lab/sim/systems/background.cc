// SPDX-License-Identifier: Apache-2.0
#include "sim/systems/background.h"

#include <fmt/format.h>

#include <utility>

namespace atp::sim {
namespace {

constexpr std::uint32_t background_start = 0;
constexpr std::uint32_t flow_event = 1;
// Bytes per write of the application. `writes_waiting` writes wait in the flow, enough to keep it busy.
constexpr std::uint64_t write_bytes = 64'000;
constexpr std::uint64_t writes_waiting = 4;

Flow::Ends ends_of(const Shared& shared, unsigned index) {
    const BackgroundSpec& spec = shared.scenario.background[index];
    const NodeId worker = shared.fabric.sites.front().worker_hosts[spec.rank];
    const NodeId other = shared.fabric.background_hosts[index];
    return spec.inbound ? Flow::Ends{.from = other, .to = worker} : Flow::Ends{.from = worker, .to = other};
}

}  // namespace

Background::Background(const Shared& shared, ProgramId id, unsigned index)
    : Program(shared, id, shared.scenario.cost_of(shared.scenario.background[index].transport)),
      index_(index),
      flow_(shared, id, flow_event, ends_of(shared, index), shared.scenario.background[index].transport) {
    wake_at(spec().start, background_start);
}

void Background::wake(std::uint32_t event, Time now) {
    if (event == flow_event) flow_.on_wake(now);
    keep_busy(now);
}

NodeId Background::node_of(std::uint32_t event) const { return event == flow_event ? flow_.ends().from : no_node; }

void Background::receive(const Arrival& arrival, Time now) {
    flow_.handle_packet(arrival, now);
    while (flow_.poll_received()) ended_ = now;
    keep_busy(now);
}

void Background::keep_busy(Time now) {
    const bool over = spec().lasts ? now >= spec().start + *spec().lasts : shared_.unfinished_jobs == 0;
    if (over) return;
    while (flow_.waiting_messages() < writes_waiting) flow_.send({.bytes = write_bytes}, 0, now);
}

BackgroundReport Background::report() const {
    return {.name = to_string(spec()), .started = spec().start, .ended = ended_, .flows = flow_.counters()};
}

}  // namespace atp::sim
