// SPDX-License-Identifier: Apache-2.0
// Checks of a finished run.
#include <fmt/format.h>

#include <algorithm>

#include "sim/world.h"
#include "wire/packet.h"

namespace atp::sim {

Report World::finish() {
    network_.drop_kept();
    Report report;
    report.seed = scenario_.seed;
    report.topology = to_string(scenario_.topology);
    report.complete = all_finished();
    report.ended = now_;
    report.packet_hops = network_.hops();
    report.events = steps_;
    for (const Job* job : jobs_) report.jobs.push_back(job->report());
    for (const Background* flow : background_) report.background.push_back(flow->report());
    if (sampler_) {
        take_sample();  // the time since the last full interval
        report.series = sampler_->series();
    }
    for (NodeId s = 0; s < fabric_.switches; ++s) {
        const bool forwards_only =
            scenario_.switchml_jobs(scenario_.jobs) == 0 &&
            std::ranges::all_of(fabric_.sites, [s](const Site& site) { return site.levels[s] < 0; });
        report.switches.push_back({.name = fabric_.nodes[s].name,
                                   .counters = switches_[s].counters(),
                                   .occupied = switches_[s].occupied(),
                                   .forwards_only = forwards_only});
    }
    for (LinkId id = 0; id < network_.links(); ++id) {
        const FabricLink& ends = network_.link(id).ends();
        report.links.push_back({.from = fabric_.nodes[ends.from].name,
                                .to = fabric_.nodes[ends.to].name,
                                .counters = network_.link(id).counters()});
    }
    check_end();
    for (std::size_t i = 0; i < jobs_.size(); ++i) jobs_[i]->check(report.jobs[i]);
    report.failures = failures_;
    return report;
}

void World::check_end() {
    for (const Job* job : jobs_) {
        if (job->finished()) continue;
        failures_.push_back(fmt::format("job {}: not finished at {:.3f} ms; {}", job->number(),
                                        to_milliseconds(now_.time_since_epoch()), job->whereabouts()));
    }
    if (!events_.empty()) return;  // stopped early: packets are still in flight
    if (network_.pool().in_use() != 0) {
        failures_.push_back(fmt::format("the simulator lost track of {} packets", network_.pool().in_use()));
    }
    check_reclaimable();
}

// At the end, no job uses an aggregator that is still occupied. After ageing, a new fragment must be able to claim it
// (H29, docs/protocol.md#h29).
void World::check_reclaimable() {
    const Time later = now_ + scenario_.ageing + std::chrono::milliseconds(1);
    const std::uint32_t newcomer = scenario_.first_job + scenario_.jobs;
    for (NodeId s = 0; s < fabric_.switches; ++s) {
        protocol::Switch& at = switches_[s];
        if (at.occupied() == 0) continue;
        if (!at.admit(newcomer, 1, 0)) failures_.push_back(fmt::format("s{} does not admit a new job", s));
        for (std::uint32_t index = 0; index < scenario_.aggregators; ++index) {
            if (at.aggregator(index).status == ATP_AGGREGATOR_FREE) continue;
            std::byte bytes[ATP_HEADER_BYTES + ATP_LANE_BYTES]{};
            atp_header header{};
            header.type = ATP_TYPE_GRADIENT;
            header.lanes = ATP_INT32_LANES;
            header.job = newcomer;
            header.token = 1;
            header.index = index;
            header.bitmap0 = header.bitmap1 = header.mask1 = 1;
            header.mask0 = 3;
            wire::encode_header(header, bytes);
            protocol::PacketBuffer packet_buffer{
                .data = bytes, .size = sizeof bytes, .capacity = sizeof bytes, .verdict = {}};
            at.handle_packet(packet_buffer, later);
            if (packet_buffer.verdict.event == ATP_EVENT_TAKEN_OVER) continue;
            failures_.push_back(fmt::format("s{}: aggregator {} stays occupied after ageing", s, index));
            return;
        }
    }
}

}  // namespace atp::sim
