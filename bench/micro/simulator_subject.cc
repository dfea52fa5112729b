// SPDX-License-Identifier: Apache-2.0
// Measures the simulator on one core with a complete run: the shipped workers, switches and server; links, queues and
// virtual time; and a check of every sum. A hop is one packet over one link. The roofline is memcpy of one packet per
// hop, between as many buffers as there are packets in flight.
#include <algorithm>
#include <memory>

#include "packets.h"
#include "sim/simulation.h"
#include "subjects.h"

namespace atp::bench {
namespace {

// Two levels of aggregation, 32 workers.
constexpr unsigned racks = 4;
constexpr unsigned workers_of_rack = 8;
// A run of 32 workers processes hundreds of bytes for each byte of a tensor, so the tensor is smaller than the size.
constexpr std::size_t tensors_in_size = 256;
constexpr std::uint32_t initial_packets_of_papers = 200;

sim::Scenario scenario_of(const Size& size) {
    sim::Scenario scenario;
    scenario.topology = {.shape = sim::TopologySpec::Shape::racks, .first = racks, .second = workers_of_rack};
    scenario.bytes = std::max<std::uint64_t>(size.tensor_bytes / tensors_in_size / ATP_LANE_BYTES, 1) * ATP_LANE_BYTES;
    scenario.lanes = lanes_of_papers;
    scenario.initial_packets = initial_packets_of_papers;
    return scenario;
}

}  // namespace

Subject simulator_subject(const Size& size) {
    struct State {
        sim::Scenario scenario;
        std::uint64_t hops;
        Packets in_flight;
        Packets copies;
        bool right = true;
    };
    const sim::Scenario scenario = scenario_of(size);
    const std::size_t in_flight = std::size_t{racks} * workers_of_rack * scenario.initial_packets;
    const auto state = std::make_shared<State>(State{.scenario = scenario,
                                                     .hops = sim::run(scenario).packet_hops,
                                                     .in_flight = Packets(in_flight, lanes_of_papers),
                                                     .copies = Packets(in_flight, lanes_of_papers)});
    Subject subject;
    subject.name = "simulator";
    subject.unit = "packet-hops/s";
    subject.bar = {BarOn::value, 3e6};
    subject.units_per_pass = static_cast<double>(state->hops);
    subject.pass = [state] {
        const sim::Report report = sim::run(state->scenario);
        // The report depends only on the scenario.
        state->right = state->right && report.passed() && report.packet_hops == state->hops;
    };
    subject.limit_pass = [state] {
        for (std::uint64_t hop = 0; hop < state->hops; ++hop) {
            const std::size_t packet = hop % state->in_flight.count();
            copy_bytes(state->copies.packet(packet).data(), state->in_flight.packet(packet).data(),
                       state->copies.packet_bytes());
        }
    };
    subject.verify = [state] { return state->right; };
    return subject;
}

}  // namespace atp::bench
