// SPDX-License-Identifier: Apache-2.0
#include "plan/evaluation.h"

#include <algorithm>
#include <utility>

#include "plan/timeline.h"

namespace atp::plan {

Rates::Rates(const Network& network, const System& system, Memories memories)
    : network_(network), systems_(network.cluster().jobs.size(), system), memories_(std::move(memories)) {
    const Cluster& cluster = network_.cluster();
    for (std::size_t job = 0; job < cluster.jobs.size(); ++job) {
        System& own = systems_[job];
        own.aggregates.resize(cluster.switches.size());
        if (!is_possible(cluster, job, own)) own.kind = System::Kind::server;
        streams_.push_back(stream_of(cluster, job, own.aggregates));
        weights_.push_back(1 / traffic(job).flow);
    }
}

Traffic Rates::traffic(std::size_t job) const {
    const std::vector<double> all(network_.cluster().switches.size(), 1);
    return traffic_of(network_, job, systems_[job], all);
}

const std::vector<Share>& Rates::of(const std::vector<bool>& active) {
    const auto [entry, fresh] = known_.try_emplace(active);
    if (fresh) {
        const auto resources = [this](std::span<const double> rates) { return resources_at(rates); };
        entry->second = share_fairly(resources, weights_, active);
    }
    return entry->second;
}

Rush Rates::rush(const std::vector<bool>& active) {
    const std::size_t jobs = streams_.size();
    Rush rush;
    for (const Share& share : of(active)) rush.rates.push_back(share.rate);
    for (std::size_t at = 0; at < memories_.size(); ++at) {
        rush.requested.emplace_back();
        for (std::size_t job = 0; job < jobs; ++job) rush.requested[at].push_back(requested(at, job, rush.rates[job]));
    }
    rush.added = added_at(rush.rates);
    return rush;
}

std::vector<Resource> Rates::resources_at(std::span<const double> rates) const {
    const std::size_t jobs = streams_.size();
    std::vector<Resource> resources;
    for (const Link& link : network_.links()) {
        resources.push_back({.capacity = link.bytes_per_s, .loads = std::vector<double>(jobs)});
    }
    const std::vector<double> added = added_at(rates);
    for (std::size_t job = 0; job < jobs; ++job) {
        const Traffic traffic = traffic_of(network_, job, systems_[job], added);
        for (std::size_t link = 0; link < traffic.loads.size(); ++link) {
            resources[link].loads[job] = traffic.loads[link];
        }
        std::vector<double> own(jobs);
        own[job] = systems_[job].kind == System::Kind::atp ? 1 : 0;
        resources.push_back({.capacity = streams_[job].window_bytes_per_s(), .loads = std::move(own)});
    }
    return resources;
}

// Packets get aggregators first come, first served. At one switch, each packet therefore has the same probability.
std::vector<double> Rates::added_at(std::span<const double> rates) const {
    std::vector<double> added(memories_.size(), 1);
    for (std::size_t at = 0; at < memories_.size(); ++at) {
        double demand = 0;
        for (std::size_t job = 0; job < rates.size(); ++job) demand += requested(at, job, rates[job]);
        if (demand > memories_[at]) added[at] = memories_[at] / demand;
    }
    return added;
}

double Rates::requested(std::size_t at, std::size_t job, double rate) const {
    const Cluster& cluster = network_.cluster();
    const System& system = systems_[job];
    const bool used = rate != 0 && system.kind == System::Kind::atp && system.aggregates[at];
    return used && cluster.serves(at, cluster.jobs[job]) ? streams_[job].in_flight(rate) : 0;
}

std::vector<JobOutcome> evaluate(const Network& network, const System& system, const Memories& memories) {
    const Cluster& cluster = network.cluster();
    Rates rates(network, system, memories);
    Timeline timeline;
    for (std::size_t job = 0; job < cluster.jobs.size(); ++job) {
        const Traffic traffic = rates.traffic(job);
        timeline.add(cluster.jobs[job].workload, traffic.latency, traffic.whole_buckets);
    }
    const auto rates_of = [&](const std::vector<bool>& active) -> const std::vector<Share>& {
        return rates.of(active);
    };
    std::vector<JobOutcome> outcomes;
    for (Course& course : timeline.run(rates_of, rates.resources())) {
        outcomes.push_back({.iteration = course.iteration, .limited = std::move(course.limited)});
    }
    return outcomes;
}

Memories memories_of(const Cluster& cluster, const std::vector<bool>& aggregates) {
    Memories memories;
    for (std::size_t at = 0; at < cluster.switches.size(); ++at) {
        memories.push_back(aggregates[at] ? static_cast<double>(cluster.switches[at].aggregators()) : 0);
    }
    return memories;
}

}  // namespace atp::plan
