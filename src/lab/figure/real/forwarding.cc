// SPDX-License-Identifier: Apache-2.0
// Workers ask the switch to forward a share of their fragments.
#include <fmt/format.h>

#include "figure/figures/claims.h"
#include "figure/figures/points.h"
#include "figure/real/real_figures.h"
#include "figure/real/trained.h"

namespace atp::figure {
namespace {

constexpr Input inputs_of_real_forwarding[] = {
    {"eight workers, server with 0.6 of a link", Origin::paper, "ATP, appendix D.1: 60 of 100 Gbit/s"},
    {"time of layers", Origin::paper, "SwitchML, table 1, ideal throughput"},
    {"batch", Origin::free, "32 samples"},
    {"ECN threshold", Origin::free, "100 kB; the paper does not state it"},
};

Trial forwarded_trial(const Lab& lab, const char* model, double share) {
    Trial trial = trained_trial("star:8", 100'000'000,
                                {.model = model,
                                 .scale = lab.pick(800.0, 300.0),
                                 .batch = lab.free("batch", 32U),
                                 .iterations = lab.pick(1U, 3U)});
    move_servers(trial);
    mark_at_servers(trial, lab.free("ECN threshold", std::uint64_t{100'000}));
    trial.network.forward_share = share;
    trial.flags.push_back(fmt::format("--rank-flags=--forward-share {}", share));
    return trial;
}

Drawing draw_real_draft_fig8(const Lab& lab) {
    const std::vector<double> shares = lab.pick<std::vector<double>>({0, 0.5, 1}, {0, 0.25, 0.5, 0.75, 1});
    const std::vector<const char*> models{"VGG16", "ResNet50"};
    std::vector<Trial> trials;
    for (const char* model : models) {
        for (const double share : shares) trials.push_back(forwarded_trial(lab, model, share));
    }
    const std::vector<Outcome> outcomes = measured(lab, trials);
    std::vector<sim::Scenario> points;
    for (const Trial& trial : trials) points.push_back(trial.network);
    const std::vector<sim::Report> reports = lab.run(points);

    LineChart chart{.title = "Eight workers at 100 Mbit/s",
                    .x = {.label = "packets forwarded to the server, %"},
                    .y = {.label = "steps per second, relative to none forwarded", .from = 0},
                    .lines = {{.name = models[0]}, {.name = models[1]}}};
    for (const char* model : models) chart.lines.push_back({.name = model + std::string(simulated)});
    for (std::size_t i = 0; i < trials.size(); ++i) {
        const std::size_t model = i / shares.size();
        const std::size_t first = model * shares.size();
        for (Line* line : {&chart.lines[model], &chart.lines[model + 2]}) line->x.push_back(shares[i - first] * 100);
        chart.lines[model].y.push_back(outcomes[first].seconds("atp") / outcomes[i].seconds("atp"));
        chart.lines[model + 2].y.push_back(samples_per_s(reports[i]) / samples_per_s(reports[first]));
    }
    Drawing drawing;
    drawing.checks = checks_of_forwarding(chart.lines[0].y, chart.lines[1].y);
    drawing.charts = {chart};
    return drawing;
}

}  // namespace

const Figure real_draft_fig8{
    .id = "draft-fig8",
    .setup =
        "Workers ask for it fragment by fragment, all of them for the same ones, and the switch then forwards the "
        "packets of all workers. The server has a host of its own. Ranks sleep for the time of the layers, which "
        "is 1,000 times longer on links that are 1,000 times slower.",
    .basis = Basis::sockets,
    .inputs = inputs_of_real_forwarding,
    .seconds = 180,
    .draw = draw_real_draft_fig8,
};

}  // namespace atp::figure
