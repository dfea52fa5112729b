// SPDX-License-Identifier: Apache-2.0
// Traffic of another application on a worker's link.
#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "figure/figures/claims.h"
#include "figure/figures/figures.h"
#include "figure/figures/points.h"

namespace atp::figure {
namespace {

using std::chrono::microseconds;

constexpr double line_gbps = 100;

constexpr Input inputs_of_background[] = {
    {"six workers, a flow of line rate on an uplink", Origin::paper, "section 5.5"},
    {"hosts take no time per packet", Origin::paper, "the flow alone reaches the line rate"},
    {"batch", Origin::free, "32 samples, so that VGG16 needs less than a fair share"},
    {"queue of a port", Origin::free, "2 MB; the paper does not state it"},
    {"ECN threshold", Origin::free, "100 kB; the paper does not state it"},
};

// A flow from the host of the second worker.
sim::Scenario contended(const Lab& lab, const char* system, Duration begin, std::optional<Duration> lasts) {
    sim::Scenario point = testbed("star:6");
    point.systems = {*sim::parse_system(system)};
    point.host_cost = {};
    point.tcp_cost = {};
    point.rdma_cost = {};
    point.queue_bytes = lab.free("queue of a port", point.queue_bytes);
    point.ecn_bytes = lab.free("ECN threshold", point.ecn_bytes);
    point.sample = lab.pick(microseconds(250), microseconds(1000));
    point.background = {{.rank = 1, .inbound = false, .start = Time(begin), .lasts = lasts}};
    return point;
}

// While the microbenchmark runs, the flow starts and ends.
struct Flow {
    Duration begin;
    Duration lasts;
};

Flow flow_of(const Lab& lab) {
    return {.begin = lab.pick(microseconds(1500), microseconds(6000)),
            .lasts = lab.pick(microseconds(4500), microseconds(24'000))};
}

sim::Scenario micro_beside_flow(const Lab& lab, const char* system) {
    const Flow flow = flow_of(lab);
    sim::Scenario point = contended(lab, system, flow.begin, flow.lasts);
    point.tensors = lab.pick(10U, 60U);
    point.bytes = std::uint64_t{4'000'000} * point.tensors;  // the paper's microbenchmark has tensors of 4 MB
    return point;
}

sim::Scenario model_beside_flow(const Lab& lab, const char* system) {
    sim::Scenario point = contended(lab, system, {}, {});
    point.models = {"VGG16"};
    point.batch = lab.free("batch", 32U);
    point.scale = lab.pick(200.0, 50.0);
    point.iterations = 4;
    return point;
}

struct Courses {
    Line job;
    Line background;
    Line wire;  // all bytes on the link, with headers
};

Courses courses_of(const sim::Report& report, const char* name) {
    const sim::Series& series = *report.series;
    return {.job = course_of(name, series.job_bytes.front(), series.interval),
            .background = course_of("background (TCP)", series.background_bytes.front(), series.interval),
            .wire = course_of("the link, with headers", series.link_bytes[link_between(report, "h1", "s0")],
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

Window settled(const Lab& lab, const sim::Report& report) {
    const double begin = to_milliseconds(flow_of(lab).begin);
    const double lasts = to_milliseconds(flow_of(lab).lasts);
    return {.from = begin + lasts / 4,
            .to = std::min(begin + lasts, to_milliseconds(report.jobs.front().time()) * 0.95)};
}

std::vector<double> samples_in(const Line& line, const Window& window) {
    std::vector<double> samples;
    for (std::size_t i = 0; i < line.x.size(); ++i) {
        if (line.x[i] > window.from && line.x[i] <= window.to) samples.push_back(line.y[i]);
    }
    return samples;
}

// Job and flow together, relative to the line rate.
double sum_of(const Courses& courses, const Window& window) {
    return (average_between(courses.job, window.from, window.to) +
            average_between(courses.background, window.from, window.to)) /
           line_gbps;
}

Drawing draw_fig16(const Lab& lab) {
    sim::Scenario model_alone = model_beside_flow(lab, "atp");
    model_alone.background.clear();
    const std::vector<sim::Report> reports =
        lab.run({micro_beside_flow(lab, "atp"), model_beside_flow(lab, "atp"), model_alone});

    const Courses busy = courses_of(reports[0], "ATP");
    const Window window = settled(lab, reports[0]);
    const double peak = average_between(busy.job, 0, to_milliseconds(flow_of(lab).begin));
    Drawing drawing;
    drawing.charts = {chart_of("VGG16", courses_of(reports[1], "ATP"),
                               {.name = "ATP alone, on average", .value = goodput_gbps(reports[2])}),
                      chart_of("Microbenchmark, which always sends", busy, {.name = "ATP alone", .value = peak})};
    drawing.checks = {equal(1, "VGG16's throughput with the flow, relative to its throughput alone",
                            samples_per_s(reports[1]) / samples_per_s(reports[2]))};
    std::ranges::move(checks_beside_flow(average_between(busy.job, window.from, window.to) / peak, sum_of(busy, window),
                                         samples_in(busy.job, window)),
                      std::back_inserter(drawing.checks));
    drawing.checks.push_back(notified("bytes on the uplink with both, relative to the line rate",
                                      average_between(busy.wire, window.from, window.to) / line_gbps));
    return drawing;
}

Drawing draw_draft_fig12(const Lab& lab) {
    const std::vector<sim::Report> reports =
        lab.run({micro_beside_flow(lab, "atp"), micro_beside_flow(lab, "ps-n:rdma"), model_beside_flow(lab, "atp"),
                 model_beside_flow(lab, "ps-n:rdma")});
    const Courses atp = courses_of(reports[0], "ATP");
    const Courses micro = courses_of(reports[1], "BytePS (RDMA)");
    const Courses model = courses_of(reports[3], "BytePS (RDMA)");
    const auto whole = [](const sim::Report& report) {
        return Window{.from = 0, .to = to_milliseconds(report.jobs.front().time()) * 0.95};
    };
    Drawing drawing;
    const Level line{.name = "line rate", .value = line_gbps};
    drawing.charts = {chart_of("VGG16, BytePS (RDMA)", model, line),
                      chart_of("Microbenchmark, BytePS (RDMA)", micro, line)};
    const double of_atp = sum_of(atp, settled(lab, reports[0]));
    const double model_of_atp = sum_of(courses_of(reports[2], "ATP"), whole(reports[2]));
    drawing.checks = checks_of_servers_beside_flow("microbenchmark", of_atp, sum_of(micro, settled(lab, reports[1])));
    std::ranges::move(checks_of_servers_beside_flow("VGG16", model_of_atp, sum_of(model, whole(reports[3]))),
                      std::back_inserter(drawing.checks));
    return drawing;
}

}  // namespace

const Figure fig16{
    .id = "fig16",
    .title = "Background traffic on a worker's link",
    .source = "ATP, section 5.5",
    .claim =
        "Background flows that individually achieve line rate compete on the uplink of one of six workers. VGG16, "
        "whose "
        "demand is less than its fair share, achieves its peak goodput. A microbenchmark that always sends achieves "
        "near the fair share. The sum of goodputs is close to the line rate, and the new bandwidth is very stable.",
    .setup =
        "The flow is TCP, which halves its window after an ECN mark. Flow and job share the queue of the worker's "
        "host. "
        "While the microbenchmark runs, the flow starts and ends. Milliseconds here are seconds in the paper.",
    .differences =
        "The uplink is full (last row), but a quarter of the bytes are headers: packets of 62 lanes have 56 bytes of "
        "ATP's "
        "header, not 16. Why the flow gets less than half is unknown.",
    .inputs = inputs_of_background,
    .draw = draw_fig16,
};

const Figure draft_fig12{
    .id = "draft-fig12",
    .title = "Background traffic, BytePS with as many servers as workers",
    .source = "ATP's earlier submission, section 7.4",
    .claim =
        "The aggregate goodput of ATP and background traffic is close to line rate, while it is not for BytePS with "
        "RDMA, because each host runs both a worker and a server.",
    .setup = "As fig16, which draws ATP.",
    .differences =
        "ATP and flow fill the uplink, but a quarter of the job's bytes are headers (fig16). Why VGG16 and the flow "
        "stay below the line is unknown.",
    .inputs = inputs_of_background,
    .draw = draw_draft_fig12,
};

}  // namespace atp::figure
