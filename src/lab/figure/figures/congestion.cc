// SPDX-License-Identifier: Apache-2.0
// Half of the required aggregators, with and without congestion control.
#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <vector>

#include "figure/figures/claims.h"
#include "figure/figures/figures.h"
#include "figure/figures/points.h"

namespace atp::figure {
namespace {

struct Setting {
    const char* name;
    bool control;
};
constexpr Setting settings[] = {{"with congestion control", true}, {"without", false}};
constexpr double stated_gain = 66.8 / 23.2;
// Without control, goodput is between 4 Gbit/s and zero; with control, it is 7.5 Gbit/s.
constexpr double collapsed_share = 4 / 7.5;

std::size_t zeros_of(const std::vector<double>& samples) {
    return static_cast<std::size_t>(std::ranges::count(samples, 0.0));
}

// Both jobs compute equally long. Of a job that also waits for lost packets, only as many samples of zero are
// off-phases as of the other.
std::vector<double> without_off_phases(const std::vector<double>& samples, std::size_t off_phases) {
    std::vector<double> kept;
    for (const double sample : samples) {
        if (sample == 0 && off_phases > 0) {
            --off_phases;
        } else {
            kept.push_back(sample);
        }
    }
    return kept;
}

std::vector<double> relative_to(double mean, std::vector<double> samples) {
    for (double& sample : samples) sample /= mean;
    return samples;
}

constexpr Input inputs_of_fig15[] = {
    {"half of the aggregators, server of 60 Gbit/s", Origin::paper, "section 5.5"},
    {"batch", Origin::free, "32 samples"},
    {"queue of a port", Origin::free, "2 MB; the paper does not state it"},
    {"ECN threshold", Origin::free, "100 kB; the paper does not state it"},
};

Drawing draw_fig15(const Lab& lab) {
    std::vector<sim::Scenario> points;
    for (const Setting& setting : settings) {
        sim::Scenario point = testbed("star:8");
        point.models = {"VGG16"};
        point.batch = lab.free("batch", 32U);
        point.scale = lab.pick(200.0, 50.0);
        point.iterations = lab.pick(3U, 10U);
        point.aggregators = 128;  // half of the window
        point.congestion_control = setting.control;
        point.queue_bytes = lab.free("queue of a port", point.queue_bytes);
        point.ecn_bytes = lab.free("ECN threshold", point.ecn_bytes);
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
    Drawing drawing;
    drawing.checks = checks_of_control({.speed = images[0], .goodputs = chart.lines[0].y},
                                       {.speed = images[1], .goodputs = chart.lines[1].y});
    drawing.checks.push_back(notified("images per second with congestion control (66.8 on other hardware)", images[0]));
    drawing.checks.push_back(
        notified("images per second without congestion control (23.2 on other hardware)", images[1]));
    drawing.charts = {chart};
    return drawing;
}

}  // namespace

std::vector<Check> checks_of_control(const ControlledRun& with, const ControlledRun& without) {
    const std::size_t off_phases = zeros_of(with.goodputs);
    const std::vector<double> busy = without_off_phases(with.goodputs, off_phases);
    const std::vector<double> uncontrolled = without_off_phases(without.goodputs, off_phases);
    const double mean = std::accumulate(busy.begin(), busy.end(), 0.0) / static_cast<double>(busy.size());
    return {number(stated_gain, same_ratio, "images per second with congestion control, relative to without",
                   with.speed / without.speed),
            stable("variation of the goodput with congestion control, without off-phases", busy),
            order("goodput fluctuates without control: its variation relative to the variation with control",
                  std::array{stable("", uncontrolled).value, stable("", busy).value}),
            collapse(collapsed_share, "share of the time without control below 4 / 7.5 of the goodput with control",
                     relative_to(mean, uncontrolled)),
            notified("Gbit/s with congestion control, without off-phases (7.5 on other hardware)", mean)};
}

const Figure fig15{
    .id = "fig15",
    .title = "Congestion control with half of the required aggregators",
    .source = "ATP, section 5.5",
    .claim =
        "Eight workers of VGG16 have 50% of the aggregators that they need. With congestion control, the goodput "
        "stabilizes around 7.5Gbps; training runs at 66.8 img/s. Without, the goodput fluctuates dramatically between "
        "4Gbps and 0; training runs at 23.2 img/s, a decrease of 65%.",
    .setup =
        "The server's processors handle 60 Gbit/s, as in the paper. Without congestion control, each worker always "
        "has 256 packets in flight. A packet that finds no aggregator waits in the queue of the server's port. The "
        "longer packets wait, the more aggregators stay in use. The paper averages over seconds, we over 0.5 ms of a "
        "run that is 50 times shorter.",
    .inputs = inputs_of_fig15,
    .draw = draw_fig15,
};

}  // namespace atp::figure
