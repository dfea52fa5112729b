// SPDX-License-Identifier: Apache-2.0
// Checks of a finished run.
#include <fmt/format.h>

#include <algorithm>

#include "protocol/decide.h"
#include "sim/world.h"

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
        if (!all_finished()) take_sample();  // the time since the last full interval
        report.series = sampler_->series();
    }
    for (NodeId node = 0; node < fabric_.nodes.size(); ++node) {
        const std::optional<SwitchCounters> counters = processes_->counters_at(node);
        const protocol::Switch* const table = processes_->table_at(node);
        if (node >= fabric_.switches && !counters) continue;
        const bool adds = processes_->switch_at({.node = node}) != nullptr || fabric_.path_level(node, scenario_);
        SwitchReport entry{.name = fabric_.nodes[node].name,
                           .forwards_only = !adds && scenario_.switchml_jobs(scenario_.jobs) == 0};
        if (counters) entry.counters = *counters;
        if (table != nullptr) entry.occupied = table->occupied();
        report.switches.push_back(std::move(entry));
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
        if (job->finished() || job->given_up()) continue;
        failures_.push_back(fmt::format("job {}: not finished at {:.3f} ms; {}", job->name(),
                                        to_milliseconds(now_.time_since_epoch()), job->whereabouts()));
    }
    if (!events_.empty()) return;  // stopped early: packets are still in flight
    if (network_.pool().in_use() != 0) {
        failures_.push_back(fmt::format("the simulator lost track of {} packets", network_.pool().in_use()));
    }
    check_reclaimable();
}

// At the end, no job uses an aggregator that is still occupied. After ageing, a new fragment must be able to claim it
// (H29, docs/spec/hazards.md#h29).
void World::check_reclaimable() {
    const Time later = now_ + scenario_.ageing + std::chrono::milliseconds(1);
    const auto microseconds = [](Duration time) { return static_cast<std::uint32_t>(time.count() / 1000); };
    for (NodeId s = 0; s < fabric_.switches; ++s) {
        const protocol::Switch* const table = processes_->table_at(s);
        if (table == nullptr) continue;
        for (std::uint32_t index = 0; index < scenario_.aggregators; ++index) {
            atp_aggregator aggregator = table->aggregator(index);
            if (aggregator.status == ATP_AGGREGATOR_FREE) continue;
            atp_header header{};
            header.type = ATP_TYPE_GRADIENT;
            header.lanes = ATP_INT32_LANES;
            header.job = scenario_.first_job + scenario_.jobs;
            header.token = 1;
            header.index = index;
            header.bitmap0 = header.bitmap1 = header.mask1 = 1;
            header.mask0 = 3;
            const atp_decision decision = atp_decide(&header, 1, 0, &aggregator, microseconds(later.time_since_epoch()),
                                                     microseconds(scenario_.ageing));
            if (decision.event == ATP_EVENT_TAKEN_OVER) continue;
            failures_.push_back(fmt::format("s{}: aggregator {} stays occupied after ageing", s, index));
            return;
        }
    }
}

}  // namespace atp::sim
