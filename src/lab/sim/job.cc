// SPDX-License-Identifier: Apache-2.0
#include "sim/job.h"

#include <fmt/format.h>

#include <utility>

#include "sim/atp_job.h"
#include "sim/systems/parameter_servers.h"
#include "sim/systems/ring.h"
#include "sim/systems/switchml_job.h"

namespace atp::sim {
namespace {

constexpr std::uint64_t job_stream = 0x70b5;
constexpr Duration start_jitter = std::chrono::microseconds(1);

}  // namespace

Job::Job(const Shared& shared, ProgramId id, const HostCost& cost, unsigned index)
    : Program(shared, id, cost),
      index_(index),
      random_(shared.scenario.seed, job_stream + index),
      workload_(shared.scenario.workload(index)),
      training_(workload_, shared.scenario.workers_of(index), shared.scenario.iterations) {
    report_.job = number();
    report_.system = to_string(shared.scenario.system_of(index));
    report_.model = shared.scenario.model_of(index);
    report_.workers = shared.scenario.workers_of(index);
    report_.started = shared.scenario.start_of(index);
    report_.iterations = shared.scenario.iterations;
    report_.tensor_bytes = shared.scenario.iterations * workload_.elements() * sizeof(float);
}

void Job::fail(const std::string& text) { Program::fail(fmt::format("job {}: {}", name(), text)); }

void Job::wake(std::uint32_t event, Time now) {
    if (event < ranks()) {
        resume(event, now);
    } else {
        on_system_event(event - ranks(), now);
    }
}

NodeId Job::node_of(std::uint32_t event) const {
    return event < ranks() ? site().worker_hosts[event] : node_of_system_event(event - ranks());
}

void Job::begin(unsigned rank, unsigned iterations_done, Time now) {
    const auto jitter =
        Duration(static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(start_jitter.count()))));
    training_.begin(rank, iterations_done, now + jitter);
    if (training_.due(rank) != never) wake_at(training_.due(rank), rank);
}

void Job::resume(unsigned rank, Time now) {
    if (finished() || now < training_.due(rank)) return;  // event of an ended incarnation
    const workload::Training::Buckets buckets = training_.advance(rank, now);
    if (training_.due(rank) != never) wake_at(training_.due(rank), rank);
    if (buckets.first != buckets.last) submit(rank, buckets, now);
}

void Job::summed(unsigned rank, std::uint32_t bucket, Time now) {
    const Time due = training_.due(rank);
    training_.summed(rank, bucket, now);
    summed_elements_ += workload_.buckets[bucket].elements;
    if (training_.due(rank) != due && training_.due(rank) != never) wake_at(training_.due(rank), rank);
    if (!finished() && training_.all_finished()) {
        report_.finished = now;
        --shared_.unfinished_jobs;
    }
}

JobReport Job::report() const {
    JobReport report = report_;
    if (finished() && report.iterations > 1) {
        report.iteration_time = (training_.last_end() - training_.first_end()) / (report.iterations - 1);
    } else {
        report.iteration_time = report.time();
    }
    const double seconds = static_cast<double>(report.iteration_time.count()) / 1e9;
    if (!report.model.empty() && seconds > 0) {
        report.samples_per_s = shared_.scenario.batch_of(index_) / shared_.scenario.scale / seconds;
    }
    return report;
}

double Job::share_done() const {
    if (finished()) return 1;
    const auto all = static_cast<double>(workload_.elements()) * ranks() * report_.iterations;
    return static_cast<double>(summed_elements_) / all;
}

std::uint64_t Job::delivered_bytes() const { return summed_elements_ * sizeof(float) / ranks(); }

std::uint64_t Job::word_of(unsigned iteration, std::uint32_t bucket, std::uint32_t part, unsigned rank) const {
    const std::uint64_t key = mix64(mix64(shared_.scenario.seed, number()), iteration);
    return mix64(key, mix64(mix64(bucket, part), rank));
}

std::uint64_t Job::sum_of_words(unsigned iteration, std::uint32_t bucket, std::uint32_t part) const {
    std::uint64_t sum = 0;
    for (unsigned rank = 0; rank < ranks(); ++rank) sum += word_of(iteration, bucket, part, rank);
    return sum;
}

std::unique_ptr<Job> make_job(const Shared& shared, ProgramId id, unsigned index) {
    switch (shared.scenario.system_of(index).kind) {
        case System::Kind::atp: return std::make_unique<AtpJob>(shared, id, index);
        case System::Kind::ps:
        case System::Kind::ps_n: return std::make_unique<ParameterServers>(shared, id, index);
        case System::Kind::ring: return std::make_unique<Ring>(shared, id, index);
        case System::Kind::switchml: return std::make_unique<SwitchmlJob>(shared, id, index);
    }
    return nullptr;
}

}  // namespace atp::sim
