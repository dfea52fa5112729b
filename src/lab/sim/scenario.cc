// SPDX-License-Identifier: Apache-2.0
// What follows from the settings of a scenario. scenario_problems.cc says what is wrong with them.
#include "sim/scenario.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "random/random.h"
#include "workload/models.h"

namespace atp::sim {
namespace {

constexpr std::uint64_t arrival_stream = 0xa441;

}  // namespace

bool Scenario::ends_incarnations() const {
    return std::ranges::any_of(faults.outages, [](const Outage& outage) {
        return outage.kind == Outage::Kind::crash && outage.node != Outage::Node::fabric_switch;
    });
}

std::optional<Duration> Scenario::effective_deadline() const {
    if (deadline) return deadline;
    if (ends_incarnations()) return std::chrono::seconds(1);
    return std::nullopt;
}

std::uint64_t Scenario::elements_of_packet() const {
    const std::uint8_t form =
        tensor::NumberForm{.scaling = scaling, .lane_type = lane_type}.form_of(numeric::ElementType::float32);
    return std::uint64_t{payload_lanes()} * (int32_switch ? 1 : atp_elements_per_word(form));
}

unsigned Scenario::workers_of(unsigned job) const {
    return job_workers.empty() ? workers() : job_workers[job % job_workers.size()];
}

System Scenario::system_of(unsigned job) const { return systems.empty() ? System{} : systems[job % systems.size()]; }

unsigned Scenario::switchml_jobs(unsigned count) const {
    unsigned found = 0;
    for (unsigned job = 0; job < count; ++job) found += system_of(job).kind == System::Kind::switchml ? 1U : 0U;
    return found;
}

switchml::JobConfig Scenario::switchml_config(unsigned job) const {
    const std::uint32_t slots =
        switchml.pool == 0 ? switchml_slots_of_paper(rate_bits_per_s) : switchml.pool / switchml_jobs(jobs);
    return {.job = static_cast<std::uint8_t>(switchml_jobs(job)),
            .workers = static_cast<std::uint8_t>(workers_of(job)),
            .slots_log2 = static_cast<std::uint8_t>(std::bit_width(slots) - 1),
            .lanes = switchml.lanes,
            .halves = switchml.halves,
            .mode = switchml.mode,
            .first_offset = first_seq};
}

std::string Scenario::model_of(unsigned job) const { return models.empty() ? "" : models[job % models.size()]; }

unsigned Scenario::batch_of(unsigned job) const {
    const workload::Model* model = workload::find_model(model_of(job));
    return model == nullptr ? 0 : batch.value_or(model->batch);
}

Time Scenario::start_of(unsigned job) const {
    double gaps = 0;
    for (unsigned k = 1; k <= job; ++k) gaps -= std::log1p(-share_of_one(mix64(mix64(seed, arrival_stream), k)));
    const auto waited = static_cast<std::int64_t>(std::llround(gaps * static_cast<double>(mean_gap.count())));
    return Time(job * stagger + Duration(waited));
}

// Without a model, all tensors are ready at once, and the computation starts when they are summed.
workload::Workload Scenario::workload(unsigned job) const {
    if (const workload::Model* found = workload::find_model(model_of(job))) {
        return workload::workload_of(
            *found,
            {.bytes = bucket_bytes, .scale = scale, .slowness = slowness, .least_elements = channels, .batch = batch});
    }
    workload::Workload workload;
    const std::uint64_t total = std::max<std::uint64_t>(bytes / sizeof(float), 1);
    for (unsigned t = 0; t < tensors; ++t) workload.buckets.push_back({.elements = share_of(total, t, tensors)});
    workload.forward.push_back({.compute = pause, .last = tensors});
    return workload;
}

unsigned Scenario::workers() const {
    switch (topology.shape) {
        case TopologySpec::Shape::star: return topology.first;
        case TopologySpec::Shape::racks: return topology.first * topology.second;
        case TopologySpec::Shape::dumbbell: return topology.first + topology.second;
        case TopologySpec::Shape::fig9: return 6;
    }
    return 0;
}

}  // namespace atp::sim
