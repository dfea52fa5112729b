// SPDX-License-Identifier: Apache-2.0
// Beyond the papers: more jobs, with random arrivals.
#include <array>

#include "figure/figures/figures.h"
#include "figure/figures/points.h"

namespace atp::figure {
namespace {

Drawing draw_arrivals(const Lab& lab) {
    const std::vector<unsigned> counts = lab.pick<std::vector<unsigned>>({8, 24}, {4, 8, 16, 32, 48});
    std::vector<sim::Scenario> points;
    for (const bool partition : {false, true}) {
        for (const unsigned jobs : counts) {
            sim::Scenario point = testbed("star:4");
            point.placement = sim::Placement::separate;
            point.jobs = jobs;
            point.mean_gap = std::chrono::microseconds(200);
            point.aggregators = 1024;
            point.window_log2 = 9;
            point.most_packets = 128;
            point.partition = partition;
            point.linear = partition;
            point.bytes = lab.pick<std::uint64_t>(2'000'000, 8'000'000);
            points.push_back(point);
        }
    }
    const std::vector<sim::Report> reports = lab.run(points);

    LineChart chart{.title = "1,024 aggregators, 128 packets in flight",
                    .x = {.label = "jobs"},
                    .y = {.label = "goodput of a worker, Gbit/s", .from = 0},
                    .lines = {{.name = "shared by all (ATP)"}, {.name = "a static part per job"}}};
    for (std::size_t i = 0; i < reports.size(); ++i) {
        Line& line = chart.lines[i / counts.size()];
        line.x.push_back(counts[i % counts.size()]);
        line.y.push_back(goodput_gbps(reports[i]));
    }
    const auto gain = [&](std::size_t i) { return chart.lines[0].y[i] / chart.lines[1].y[i]; };
    Drawing drawing;
    drawing.checks = {order("shared relative to static parts, most jobs", std::array{gain(counts.size() - 1), 1.0}),
                      notified("shared relative to static parts, 8 jobs", gain(lab.pick(0U, 1U)))};
    drawing.charts = {chart};
    return drawing;
}

}  // namespace

const Figure beyond_arrivals{
    .id = "beyond-arrivals",
    .title = "Many jobs that arrive at random",
    .source = "beyond the papers",
    .claim =
        "Jobs that come and go share the aggregators packet by packet, so a new job can use all free aggregators. If "
        "the memory is divided among the largest possible number of jobs, the part of each job is too small.",
    .setup =
        "Each job sums one tensor and has hosts of its own. New jobs start at random times, one every 200 us on "
        "average. A job has 128 packets in flight. Eight jobs together need every aggregator, and each has to find its "
        "own by chance: the server adds the packets that collide meanwhile. With static parts nothing collides.",
    .draw = draw_arrivals,
};

}  // namespace atp::figure
