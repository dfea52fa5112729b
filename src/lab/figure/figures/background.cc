// SPDX-License-Identifier: Apache-2.0
// Traffic of another application on a worker's link.
#include <algorithm>

#include "figure/figures/figures.h"
#include "figure/figures/points.h"

namespace atp::figure {
namespace {

using std::chrono::microseconds;

constexpr double line_gbps = 100;

// A flow to the second worker. It shares a switch queue with the job, which marks and drops.
sim::Scenario contended(Duration begin, std::optional<Duration> lasts, Duration sample) {
    sim::Scenario point = testbed("star:6");
    // Hosts take no time per packet: only the time on the wire counts.
    point.host_cost = {};
    point.tcp_cost = {};
    point.rdma_cost = {};
    point.sample = sample;
    point.background = {{.rank = 1, .inbound = true, .start = Time(begin), .lasts = lasts}};
    return point;
}

struct Courses {
    Line job;
    Line background;
    Line wire;  // all bytes on the link, with headers
};

Courses courses_of(const sim::Report& report) {
    const sim::Series& series = *report.series;
    return {.job = course_of("ATP", series.job_bytes.front(), series.interval),
            .background = course_of("background (TCP)", series.background_bytes.front(), series.interval),
            .wire = course_of("the link, with headers", series.link_bytes[link_between(report, "s0", "h1")],
                              series.interval)};
}

LineChart chart_of(std::string title, const Courses& courses, Level peak) {
    return {.title = std::move(title),
            .x = {.label = "time, ms", .from = 0},
            .y = {.label = "Gbit/s", .from = 0},
            .lines = {courses.job, courses.background, courses.wire},
            .levels = {std::move(peak)}};
}

// The interval in which the flow is stable and the job runs.
struct Window {
    double from;
    double to;
};

Window settled(double begin, double lasts, const sim::Report& report) {
    return {.from = begin + lasts / 4,
            .to = std::min(begin + lasts, to_milliseconds(report.jobs.front().time()) * 0.95)};
}

Drawing draw_fig16(const Lab& lab) {
    const Duration begin = lab.pick(microseconds(1500), microseconds(6000));
    const Duration lasts = lab.pick(microseconds(4500), microseconds(24'000));
    const Duration sample = lab.pick(microseconds(250), microseconds(1000));
    sim::Scenario micro = contended(begin, lasts, sample);
    micro.bytes = lab.pick<std::uint64_t>(40'000'000, 240'000'000);
    sim::Scenario model = contended({}, {}, sample);
    model.models = {"VGG16"};
    model.scale = lab.pick(200.0, 50.0);
    model.iterations = 4;
    sim::Scenario model_alone = model;
    model_alone.background.clear();
    const std::vector<sim::Report> reports = lab.run({micro, model, model_alone});

    const Courses busy = courses_of(reports[0]);
    const Window window = settled(to_milliseconds(begin), to_milliseconds(lasts), reports[0]);
    const double peak = average_between(busy.job, 0, to_milliseconds(begin));
    const double share = average_between(busy.job, window.from, window.to) / peak;
    const double wire = average_between(busy.wire, window.from, window.to) / line_gbps;
    const Courses training = courses_of(reports[1]);
    const double alone = samples_per_s(reports[2]);
    Drawing drawing;
    drawing.charts = {chart_of("VGG16", training, {.name = "ATP alone, on average", .value = goodput_gbps(reports[2])}),
                      chart_of("Microbenchmark, which always sends", busy, {.name = "ATP alone", .value = peak})};
    drawing.checks = {
        at_least(0.95, "VGG16's throughput with the flow, relative to its throughput alone",
                 samples_per_s(reports[1]) / alone),
        between(0.35, 0.65, "the microbenchmark's goodput with the flow, relative to its goodput alone (fair: 0.5)",
                share),
        at_least(0.95, "throughput of the link with both, relative to its rate", wire)};
    return drawing;
}

}  // namespace

const Figure fig16{
    .id = "fig16",
    .title = "Background traffic on a worker's link",
    .source = "ATP, section 5.5",
    .claim =
        "A background flow could fill the link of one of six workers. VGG16 needs less than its fair share and "
        "reaches its peak. A microbenchmark that always sends gets nearly its fair share. Job and flow together fill "
        "the link.",
    .setup =
        "The flow is TCP, which halves its window after an ECN mark. The flow goes towards the worker, so flow and "
        "job share a queue of the switch. While the microbenchmark runs, the flow starts and ends. Milliseconds here "
        "are seconds in the paper. Hosts take no time per packet, so only the link is shared.",
    .draw = draw_fig16,
};

}  // namespace atp::figure
