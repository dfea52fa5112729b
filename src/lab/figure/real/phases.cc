// SPDX-License-Identifier: Apache-2.0
// A worker and a server, and a switch between them that only forwards.
#include <algorithm>

#include "figure/figures/claims.h"
#include "figure/figures/points.h"
#include "figure/real/real_figures.h"
#include "figure/real/trained.h"

namespace atp::figure {
namespace {

constexpr Input inputs_of_real_fig3[] = {
    {"one worker, one server, a switch that forwards", Origin::paper, "section 2.2"},
    {"server with 0.6 of a link", Origin::paper, "section D.1: 60 of 100 Gbit/s"},
    {"time of layers", Origin::paper, "SwitchML, table 1, ideal throughput"},
    {"batch", Origin::free, "32 samples"},
};

Drawing draw_real_fig3(const Lab& lab) {
    Trial model =
        trained_trial("star:2", 100'000'000,
                      {.model = "VGG16", .scale = 50, .batch = lab.free("batch", 32U), .iterations = lab.pick(2U, 4U)});
    Trial tensor{.network = linked("star:2", 100'000'000), .systems = {}};
    for (Trial* trial : {&model, &tensor}) {
        move_servers(*trial);
        trial->systems = {"atp-nowhere"};
        for (const char* word : {"--job-hosts", "0"}) trial->flags.emplace_back(word);
    }
    for (const char* word : {"--sample", "20ms"}) model.flags.emplace_back(word);
    const std::vector<Outcome> outcomes = measured(lab, {model, tensor});

    const Line course = received_by_first_host("VGG16", outcomes[0], "atp-nowhere");
    // All iterations but the last one, which ends before its forward pass.
    const double iteration = outcomes[0].seconds("atp-nowhere");
    const auto end = std::ranges::upper_bound(course.x, model.network.iterations * iteration);
    const std::vector<double> whole(course.y.begin(), course.y.begin() + (end - course.x.begin()));
    const workload::Workload layers = model.network.workload(0);
    const double bits = static_cast<double>(layers.elements()) * 32;
    Drawing drawing;
    drawing.checks = checks_of_phases(whole, {.iteration = iteration,
                                              .sending = bits / outcomes[1].goodput_bps("atp-nowhere"),
                                              .computing = to_milliseconds(layers.compute()) / 1e3});
    drawing.charts = {LineChart{.title = "VGG16, one worker and one server",
                                .x = {.label = "time, s", .from = 0},
                                .y = {.label = "received by the worker, Mbit/s", .from = 0},
                                .lines = {course}}};
    return drawing;
}

}  // namespace

const Figure real_fig3{
    .id = "fig3",
    .setup =
        "The worker's link has 100 Mbit/s and the server's 60, as 100 and 60 Gbit/s in the paper. The curve is only "
        "plotted there, so the share of time that sends is compared with the table of layers, at the goodput of "
        "one tensor on the same links.",
    .basis = Basis::sockets,
    .inputs = inputs_of_real_fig3,
    .seconds = 130,
    .draw = draw_real_fig3,
};

}  // namespace atp::figure
