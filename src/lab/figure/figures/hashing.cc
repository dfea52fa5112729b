// SPDX-License-Identifier: Apache-2.0
// Selection of aggregators: by hash, in sequence, or in a separate part per job.
#include <array>
#include <cmath>

#include "figure/figures/figures.h"
#include "figure/figures/points.h"

namespace atp::figure {
namespace {

struct Scheme {
    const char* name;
    bool linear;
    bool partition;
};
constexpr Scheme schemes[] = {
    {"hash-based dynamic (ATP)", false, false}, {"linear-based dynamic", true, false}, {"static parts", true, true}};
constexpr unsigned most_jobs = 8;

constexpr Input inputs_of_fig14[] = {
    {"eight jobs, as many aggregators as windows", Origin::paper, "section 5.4.2: 100 % of the peak"},
    {"tensors of a job", Origin::free, "4 of 8 MB; the longer a job, the less its first round counts"},
};

Drawing draw_fig14(const Lab& lab) {
    const std::vector<unsigned> counts = lab.pick<std::vector<unsigned>>({1, 8}, {1, 2, 3, 4, 5, 6, 7, 8});
    std::vector<sim::Scenario> points;
    for (const Scheme& scheme : schemes) {
        for (const unsigned jobs : counts) {
            sim::Scenario point = testbed("star:4");
            point.placement = sim::Placement::separate;
            point.jobs = jobs;
            point.aggregators = most_jobs << point.window_log2;
            point.linear = scheme.linear;
            point.partition = scheme.partition;
            point.bytes = lab.pick<std::uint64_t>(4'000'000, 8'000'000);
            point.iterations = lab.free("tensors of a job", lab.pick(3U, 4U));
            points.push_back(point);
        }
    }
    const std::vector<sim::Report> reports = lab.run(points);

    LineChart chart{.title = "Tensor after tensor",
                    .x = {.label = "jobs"},
                    .y = {.label = "goodput of a worker, Gbit/s", .from = 0}};
    for (std::size_t i = 0; i < reports.size(); ++i) {
        if (i % counts.size() == 0) chart.lines.push_back({.name = schemes[i / counts.size()].name});
        chart.lines.back().x.push_back(counts[i % counts.size()]);
        chart.lines.back().y.push_back(goodput_gbps(reports[i]));
    }
    const auto of_static = [&](std::size_t scheme, std::size_t point) {
        return chart.lines[scheme].y[point] / chart.lines[2].y[point];
    };
    // The hashed jobs whose speed is furthest from static parts.
    double furthest = 1;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        if (std::abs(of_static(0, i) - 1) > std::abs(furthest - 1)) furthest = of_static(0, i);
    }
    const std::size_t eight = counts.size() - 1;
    const double settled = settled_goodput_gbps(reports[eight]) / settled_goodput_gbps(reports.back());
    Drawing drawing;
    drawing.checks = {equal(1, "hash-based relative to static parts, the count of jobs that differs most", furthest),
                      order("hash-based relative to linear-based, with eight jobs",
                            std::array{of_static(0, eight), of_static(1, eight)}),
                      notified("hash-based relative to static parts, eight jobs, after the first round", settled),
                      notified("linear-based relative to static parts, eight jobs", of_static(1, eight))};
    drawing.charts = {chart};
    return drawing;
}

}  // namespace

const Figure fig14{
    .id = "fig14",
    .title = "Hashed, linear and static aggregators",
    .source = "ATP, section 5.4.2",
    .claim =
        "As the number of microbenchmark jobs increases up to eight, the hash-based scheme matches the static scheme "
        "and "
        "greatly outperforms the linear-based scheme.",
    .setup =
        "Each job has four workers and a server on hosts of their own, and a window of 256 packets. The switch has "
        "2,048 aggregators. Goodput includes the first round, in which slots search for aggregators without "
        "collisions.",
    .inputs = inputs_of_fig14,
    .draw = draw_fig14,
};

}  // namespace atp::figure
