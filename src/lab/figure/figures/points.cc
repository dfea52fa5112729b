// SPDX-License-Identifier: Apache-2.0
#include "figure/figures/points.h"

#include <algorithm>

namespace atp::figure {
namespace {

template <class Get>
double average_of_jobs(const sim::Report& report, Get get) {
    double sum = 0;
    for (const sim::JobReport& job : report.jobs) sum += get(job);
    return sum / static_cast<double>(report.jobs.size());
}

}  // namespace

sim::Scenario testbed(std::string_view topology) {
    sim::Scenario point;
    point.topology = *sim::parse_topology(topology);
    point.server = sim::ServerPlacement::dedicated;
    point.host_cost = sim::cost_of_papers;
    point.tcp_cost = sim::tcp_cost_of_papers;
    point.rdma_cost = sim::rdma_cost_of_papers;
    point.audit = false;
    point.initial_packets = 200;  // of 306 B (ATP §3.7)
    point.ecn_bytes = 100'000;    // 8 us at line rate
    return point;
}

double goodput_gbps(const sim::Report& report) {
    return average_of_jobs(report, [](const sim::JobReport& job) { return job.goodput_bits_per_s(); }) / giga;
}

double samples_per_s(const sim::Report& report) {
    return average_of_jobs(report, [](const sim::JobReport& job) { return job.samples_per_s; });
}

double settled_goodput_gbps(const sim::Report& report) {
    return average_of_jobs(report, [](const sim::JobReport& job) {
        const double bits = static_cast<double>(job.tensor_bytes) * 8 / job.iterations;
        return bits / (to_milliseconds(job.iteration_time) * 1e-3) / giga;
    });
}

Line course_of(std::string name, const std::vector<std::uint64_t>& bytes, Duration interval) {
    Line line{.name = std::move(name), .markers = false};
    const double step = to_milliseconds(interval);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        line.x.push_back(step * static_cast<double>(i + 1));
        line.y.push_back(static_cast<double>(bytes[i]) * 8 / (step * 1e-3) / giga);
    }
    return line;
}

double average_between(const Line& line, double from, double to) {
    double sum = 0;
    unsigned count = 0;
    for (std::size_t i = 0; i < line.x.size(); ++i) {
        if (line.x[i] <= from || line.x[i] > to) continue;
        sum += line.y[i];
        ++count;
    }
    return sum / count;
}

std::size_t link_between(const sim::Report& report, std::string_view from, std::string_view to) {
    const auto link = std::ranges::find_if(
        report.links, [&](const sim::LinkReport& entry) { return entry.from == from && entry.to == to; });
    return static_cast<std::size_t>(link - report.links.begin());
}

}  // namespace atp::figure
