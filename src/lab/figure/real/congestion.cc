// SPDX-License-Identifier: Apache-2.0
// Windows that halve, or not, at half of the aggregators that they need.
#include <fmt/format.h>

#include "figure/figures/claims.h"
#include "figure/figures/points.h"
#include "figure/real/real_figures.h"
#include "figure/real/trained.h"

namespace atp::figure {
namespace {

constexpr std::uint64_t queue_bytes = 2'000'000;
constexpr std::uint64_t mark_bytes = 100'000;

constexpr Input inputs_of_real_fig15[] = {
    {"half of the aggregators, server with 0.6 of a link", Origin::paper, "section 5.5: 60 of 100 Gbit/s"},
    {"batch", Origin::free, "32 samples"},
    {"queue of a port", Origin::free, "2 MB; the paper does not state it"},
    {"ECN threshold", Origin::free, "100 kB; the paper does not state it"},
};

Trial controlled(const Lab& lab, bool control) {
    Trial trial = trained_trial("star:8", 100'000'000,
                                {.model = "VGG16",
                                 .scale = lab.pick(500.0, 200.0),
                                 .batch = lab.free("batch", 32U),
                                 .iterations = lab.pick(3U, 5U)});
    move_servers(trial);
    sim::Scenario& network = trial.network;
    network.aggregators = network.most_packets / 2;
    network.congestion_control = control;
    network.queue_bytes = lab.free("queue of a port", queue_bytes);
    mark_at_servers(trial, lab.free("ECN threshold", mark_bytes));
    for (const char* word : {"--sample", "50ms"}) trial.flags.emplace_back(word);
    if (!control) trial.flags.emplace_back("--rank-flags=--no-halving");
    return trial;
}

Drawing draw_real_fig15(const Lab& lab) {
    const std::vector<Trial> trials{controlled(lab, true), controlled(lab, false)};
    const std::vector<Outcome> outcomes = measured(lab, trials);
    const std::vector<sim::Report> reports = lab.run({trials[0].network, trials[1].network});

    LineChart course{.title = "VGG16, eight workers at 100 Mbit/s",
                     .x = {.label = "time, s", .from = 0},
                     .y = {.label = "received by a worker, Mbit/s", .from = 0}};
    BarChart speeds{.title = "Speed of the training",
                    .y = {.label = "steps per second, relative to congestion control", .from = 0},
                    .categories = {"with congestion control", "without"},
                    .bars = {{.name = "ATP"}, {.name = "ATP" + std::string(simulated)}}};
    std::vector<ControlledRun> runs;
    for (std::size_t i = 0; i < trials.size(); ++i) {
        course.lines.push_back(received_by_first_host(speeds.categories[i], outcomes[i], "atp"));
        runs.push_back({.speed = 1 / outcomes[i].seconds("atp"), .goodputs = course.lines.back().y});
        for (double& goodput : runs.back().goodputs) goodput /= 1000;
        speeds.bars[0].values.push_back(outcomes[0].seconds("atp") * runs[i].speed);
        speeds.bars[1].values.push_back(samples_per_s(reports[i]) / samples_per_s(reports[0]));
    }
    Drawing drawing;
    drawing.checks = checks_of_control(runs[0], runs[1]);
    drawing.charts = {course, speeds};
    return drawing;
}

}  // namespace

const Figure real_fig15{
    .id = "fig15",
    .setup =
        "The server has a host of its own, whose link has 60 Mbit/s where workers have 100, and eBPF marks what a "
        "queue of 60 Mbit/s in front of it would hold back. Half of the aggregators are 64, for 128 packets in "
        "flight. Samples of 50 ms are those of the first worker's link.",
    .differences =
        "The queue decides how much control brings: with smaller ones, jobs without control are slower "
        "([experiment](experiments.md#smaller-queues)). The backward pass sends in bursts, so the goodput also varies "
        "with control.",
    .basis = Basis::sockets,
    .inputs = inputs_of_real_fig15,
    .seconds = 200,
    .draw = draw_real_fig15,
};

}  // namespace atp::figure
