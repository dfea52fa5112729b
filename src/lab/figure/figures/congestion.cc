// SPDX-License-Identifier: Apache-2.0
// Half of the required aggregators, with and without congestion control.
#include <algorithm>
#include <chrono>

#include "figure/figures/figures.h"
#include "figure/figures/points.h"

namespace atp::figure {
namespace {

struct Setting {
    const char* name;
    bool control;
    std::uint64_t queue_bytes;
};
constexpr Setting settings[] = {{"with congestion control", true, 2'000'000},
                                {"without", false, 2'000'000},
                                {"without, queues of 500 kB", false, 500'000}};

Drawing draw_fig15(const Lab& lab) {
    std::vector<sim::Scenario> points;
    for (const Setting& setting : settings) {
        sim::Scenario point = testbed("star:8");
        point.models = {"VGG16"};
        point.batch = 32;
        point.scale = lab.pick(200.0, 50.0);
        point.iterations = lab.pick(3U, 10U);
        point.aggregators = 128;  // half of the window
        point.congestion_control = setting.control;
        point.queue_bytes = setting.queue_bytes;
        point.sample = lab.pick(std::chrono::microseconds(100), std::chrono::microseconds(500));
        points.push_back(point);
    }
    const std::vector<sim::Report> reports = lab.run(points);

    std::vector<double> images;
    LineChart chart{.title = "VGG16, eight workers",
                    .x = {.label = "time, ms", .from = 0},
                    .y = {.label = "goodput of a worker, Gbit/s", .from = 0}};
    for (std::size_t i = 0; i < reports.size(); ++i) {
        images.push_back(samples_per_s(reports[i]));
        chart.lines.push_back(
            course_of(settings[i].name, reports[i].series->job_bytes.front(), reports[i].series->interval));
    }
    // The last run takes much longer: the chart shows at most twice the duration of the second run.
    const double shown = 2 * static_cast<double>(chart.lines[1].x.size());
    Line& collapsed = chart.lines.back();
    const std::size_t kept = std::min(collapsed.x.size(), static_cast<std::size_t>(shown));
    collapsed.x.resize(kept);
    collapsed.y.resize(kept);
    Drawing drawing;
    drawing.checks = {
        at_least(2, "images per second with congestion control, relative to without", images[0] / images[1]),
        notified("images per second with congestion control", images[0]),
        notified("images per second without congestion control", images[1]),
        notified("images per second without congestion control, queues of 500 kB", images[2])};
    drawing.charts = {chart};
    return drawing;
}

}  // namespace

const Figure fig15{
    .id = "fig15",
    .title = "Congestion control with half of the required aggregators",
    .source = "ATP, section 5.5",
    .claim =
        "Eight workers of VGG16 have half of the aggregators that they need. With congestion control, the goodput is "
        "stable (66.8 images per second). Without congestion control, the goodput collapses to between 4 Gbit/s and "
        "zero (23.2 images per second).",
    .setup =
        "The server's processors handle 60 Gbit/s, as in the paper. Without congestion control, each worker always "
        "has 256 packets in flight. A packet that finds no aggregator waits in the queue of the server's port. The "
        "longer packets wait, the more aggregators stay in use. If the queue is too short for eight windows, packets "
        "are lost too, and goodput falls to almost zero.",
    .draw = draw_fig15,
};

}  // namespace atp::figure
