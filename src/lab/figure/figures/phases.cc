// SPDX-License-Identifier: Apache-2.0
// Phases in which a training job sends, and in which it only computes.
#include <algorithm>
#include <array>
#include <chrono>

#include "figure/figures/claims.h"
#include "figure/figures/figures.h"
#include "figure/figures/points.h"

namespace atp::figure {
namespace {

constexpr Input inputs_of_fig3[] = {
    {"one worker, one server, a switch that forwards", Origin::paper, "section 2.2"},
    {"rates and copying of hosts", Origin::paper, "sections 5.1 and D.1"},
    {"time of layers", Origin::paper, "SwitchML, table 1, ideal throughput"},
    {"batch", Origin::free, "32 samples"},
};

Drawing draw_fig3(const Lab& lab) {
    sim::Scenario point = testbed("star:1");
    point.aggregation = sim::Aggregation::nowhere;
    point.models = {"VGG16"};
    point.batch = lab.free("batch", 32U);
    point.scale = lab.pick(100.0, 20.0);
    point.iterations = lab.pick(4U, 10U);
    point.sample = lab.pick(std::chrono::microseconds(20), std::chrono::microseconds(100));
    sim::Scenario tensor = point;  // the goodput of a job that always sends
    tensor.models.clear();
    tensor.batch.reset();
    tensor.bytes = 10'000'000;
    const std::vector<sim::Report> reports = lab.run({point, tensor});

    const Line course = course_of("VGG16", reports[0].series->job_bytes.front(), reports[0].series->interval);
    const workload::Workload layers = point.workload(0);
    const double bits = static_cast<double>(layers.elements()) * 32;
    Drawing drawing;
    drawing.checks = checks_of_phases(course.y, {.iteration = to_milliseconds(reports[0].jobs.front().iteration_time),
                                                 .sending = bits / (goodput_gbps(reports[1]) * giga) * 1e3,
                                                 .computing = to_milliseconds(layers.compute())});
    drawing.charts = {LineChart{.title = "VGG16, one worker and one server",
                                .x = {.label = "time, ms", .from = 0},
                                .y = {.label = "goodput of the worker, Gbit/s", .from = 0},
                                .lines = {course}}};
    return drawing;
}

}  // namespace

std::vector<Check> checks_of_phases(const std::vector<double>& goodputs, const PhaseTimes& times) {
    const auto all = static_cast<double>(goodputs.size());
    const auto on = static_cast<double>(std::ranges::count_if(goodputs, [](double y) { return y > 0; }));
    return {order("an iteration has off-phases: all of its time relative to the time that sends", std::array{all, on},
                  1 + equality),
            // By the table of layers: all gradients at the goodput of one tensor, in an iteration that computes
            // meanwhile.
            number(times.sending / times.iteration, same_ratio,
                   "share of the time that sends (stated: by the table of layers)", on / all),
            notified("time of computation, relative to the time of an iteration", times.computing / times.iteration)};
}

const Figure fig3{
    .id = "fig3",
    .title = "On and off phases of a training job",
    .source = "ATP, section 2.2",
    .claim = "A job training VGG16 shows an on-off communication pattern for a simple one worker-one PS setting.",
    .setup =
        "The curve is only plotted in the paper, so the share of time that sends is compared with the table of layers, "
        "not with the paper.",
    .basis = Basis::arithmetic,
    .inputs = inputs_of_fig3,
    .draw = draw_fig3,
};

}  // namespace atp::figure
