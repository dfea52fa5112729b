// SPDX-License-Identifier: Apache-2.0
// Switches forward a share of all packets unaggregated.
#include "figure/figures/figures.h"
#include "figure/figures/points.h"
#include "figure/table.h"

namespace atp::figure {
namespace {

Drawing draw_draft_fig8(const Lab& lab) {
    const std::vector<double> shares =
        lab.pick<std::vector<double>>({0, 0.5, 1}, {0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1});
    const std::vector<const char*> models{"VGG16", "ResNet50"};
    std::vector<sim::Scenario> points;
    for (const char* model : models) {
        for (const double share : shares) {
            sim::Scenario point = testbed("star:8");
            point.models = {model};
            point.scale = lab.pick(200.0, 40.0);
            point.iterations = 3;
            point.forward_share = share;
            points.push_back(point);
        }
    }
    const std::vector<sim::Report> reports = lab.run(points);

    LineChart chart{.title = "Eight workers",
                    .x = {.label = "packets forwarded to the server, %"},
                    .y = {.label = "samples per second, relative to none forwarded", .from = 0}};
    for (std::size_t i = 0; i < reports.size(); ++i) {
        const std::size_t first = i / shares.size() * shares.size();
        if (i == first) chart.lines.push_back({.name = models[i / shares.size()]});
        chart.lines.back().x.push_back(shares[i - first] * 100);
        chart.lines.back().y.push_back(samples_per_s(reports[i]) / samples_per_s(reports[first]));
    }
    Drawing drawing;
    drawing.checks = {
        at_most(0.8, "throughput of VGG16 with all packets forwarded, relative to none", chart.lines[0].y.back()),
        at_least(1.1, "share that ResNet50 keeps with all packets forwarded, relative to VGG16's share",
                 chart.lines[1].y.back() / chart.lines[0].y.back())};
    for (std::size_t i = 1; i < shares.size(); ++i) {
        drawing.checks.push_back(at_most(
            1.01, "VGG16 at " + number_text(shares[i] * 100) + " % forwarded, relative to the next smaller share",
            chart.lines[0].y[i] / chart.lines[0].y[i - 1]));
    }
    drawing.charts = {chart};
    return drawing;
}

}  // namespace

const Figure draft_fig8{
    .id = "draft-fig8",
    .title = "Throughput if a share of the packets is forwarded to the server",
    .source = "ATP's earlier submission, section 7.2.4",
    .claim =
        "The more packets the switches forward unaggregated, the lower the throughput. VGG16 loses more than "
        "ResNet50.",
    .setup =
        "Switches forward a share of the fragments unaggregated: of such a fragment, they forward the packets of all "
        "workers.",
    .draw = draw_draft_fig8,
};

}  // namespace atp::figure
