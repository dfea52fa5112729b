// SPDX-License-Identifier: Apache-2.0
// Switches forward a share of all packets unaggregated.
#include <array>

#include "figure/figures/claims.h"
#include "figure/figures/figures.h"
#include "figure/figures/points.h"

namespace atp::figure {
namespace {

constexpr Input inputs_of_forwarding[] = {
    {"eight workers, server of 60 Gbit/s", Origin::paper, "ATP, appendix D.1"},
    {"time of layers", Origin::paper, "SwitchML, table 1, ideal throughput"},
    {"batch", Origin::free, "32 samples"},
};

sim::Scenario forwarded(const Lab& lab, const char* model, double share) {
    sim::Scenario point = testbed("star:8");
    point.models = {model};
    point.batch = lab.free("batch", 32U);
    point.scale = lab.pick(200.0, 40.0);
    point.iterations = 3;
    point.forward_share = share;
    return point;
}

// Throughput with half of the packets forwarded, relative to none.
BarChart half_forwarded(const Lab& lab) {
    const std::vector<const char*> models = lab.pick<std::vector<const char*>>(
        {"AlexNet", "ResNet152"}, {"AlexNet", "VGG11", "VGG19", "ResNet101", "ResNet152"});
    std::vector<sim::Scenario> points;
    for (const char* model : models) {
        points.push_back(forwarded(lab, model, 0));
        points.push_back(forwarded(lab, model, 0.5));
    }
    const std::vector<sim::Report> reports = lab.run(points);
    BarChart chart{.title = "50 % forwarded, other models",
                   .y = {.label = "samples per second, relative to none forwarded", .from = 0},
                   .bars = {{.name = "ATP"}}};
    for (std::size_t i = 0; i < models.size(); ++i) {
        chart.categories.emplace_back(models[i]);
        chart.bars[0].values.push_back(samples_per_s(reports[2 * i + 1]) / samples_per_s(reports[2 * i]));
    }
    return chart;
}

Drawing draw_draft_fig8(const Lab& lab) {
    const std::vector<double> shares =
        lab.pick<std::vector<double>>({0, 0.5, 1}, {0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1});
    const std::vector<const char*> models{"VGG16", "ResNet50"};
    std::vector<sim::Scenario> points;
    for (const char* model : models) {
        for (const double share : shares) points.push_back(forwarded(lab, model, share));
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
    drawing.checks = checks_of_forwarding(chart.lines[0].y, chart.lines[1].y);
    drawing.charts = {chart, half_forwarded(lab)};
    return drawing;
}

}  // namespace

std::vector<Check> checks_of_forwarding(const std::vector<double>& vgg, const std::vector<double>& resnet) {
    return {monotone(Trend::falls, "VGG16's throughput over the share forwarded", vgg),
            monotone(Trend::falls, "ResNet50's throughput over the share forwarded", resnet),
            order("with all packets forwarded, VGG16 loses more than ResNet50", std::array{resnet.back(), vgg.back()}),
            notified("VGG16's throughput with all packets forwarded, relative to none", vgg.back()),
            notified("ResNet50's throughput with all packets forwarded, relative to none", resnet.back())};
}

const Figure draft_fig8{
    .id = "draft-fig8",
    .title = "Throughput if a share of the packets is forwarded to the server",
    .source = "ATP's earlier submission, section 7.2.4",
    .claim =
        "The performance degrades as the forwarding rate increases, more for the communication-intensive workload "
        "(VGG16) than for the computation-intensive workload (ResNet50).",
    .setup =
        "Switches forward a share of the fragments unaggregated: of such a fragment, they forward the packets of all "
        "workers. The text has no number, and nothing about figure 8b, which shows a rate of 50 %.",
    .inputs = inputs_of_forwarding,
    .draw = draw_draft_fig8,
};

}  // namespace atp::figure
