// SPDX-License-Identifier: Apache-2.0
// Selection of aggregators: by hash, in sequence, or in a separate part per job.
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
            point.iterations = lab.pick(3U, 4U);
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
        chart.lines.back().y.push_back(settled_goodput_gbps(reports[i]));
    }
    const auto of_static = [&](std::size_t scheme, std::size_t point) {
        return chart.lines[scheme].y[point] / chart.lines[2].y[point];
    };
    Drawing drawing;
    double least = 1;
    for (std::size_t i = 0; i < counts.size(); ++i) least = std::min(least, of_static(0, i));
    drawing.checks = {
        at_least(0.95, "hash-based relative to static parts, minimum", least),
        at_most(0.6, "linear-based relative to static parts, with eight jobs", of_static(1, counts.size() - 1))};
    drawing.charts = {chart};
    return drawing;
}

}  // namespace

const Figure fig14{
    .id = "fig14",
    .title = "Hashed, linear and static aggregators",
    .source = "ATP, section 5.4.2",
    .claim =
        "Up to eight microbenchmark jobs have as many aggregators as they need. Hashing is as fast as static parts "
        "and much faster than aggregators taken in sequence.",
    .setup =
        "Each job has four workers and a server on hosts of their own, and a window of 256 packets. The switch has "
        "2,048 aggregators. Goodput excludes the first round, in which slots search for aggregators without "
        "collisions.",
    .draw = draw_fig14,
};

}  // namespace atp::figure
