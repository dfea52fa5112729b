// SPDX-License-Identifier: Apache-2.0
// Training throughput of whole models, with ATP and the systems that it is compared with.
#include <algorithm>
#include <optional>

#include "figure/figures/figures.h"
#include "figure/figures/points.h"
#include "workload/models.h"

namespace atp::figure {
namespace {

struct ModelsContender {
    const char* name;
    const char* system;
    // Bounds of ATP's largest gain over this system, near the paper's. TCP has no bounds, because single numbers of the
    // papers do not describe its stacks.
    std::optional<double> least_lead{};
    std::optional<double> most_lead{};
};
constexpr ModelsContender models_contenders[] = {
    {"ATP", "atp"},
    {"BytePS NtoN RDMA (paper: 1.5)", "ps-n:rdma", 1.15, 1.75},
    {"BytePS NtoN TCP (paper: 2.5)", "ps-n:tcp"},
    {"BytePS Nto1 TCP (paper: 8.7)", "ps:tcp", 6, 14},
    {"Horovod RDMA (paper: 1.24)", "ring:rdma", 1.1, 1.5},
    {"Horovod TCP (paper: 4.2)", "ring:tcp"},
    {"SwitchML (paper: 1.5)", "switchml", 1.15, 1.75},
};
constexpr unsigned batch = 32;
constexpr const char* models[] = {"AlexNet", "VGG11", "VGG16", "VGG19", "ResNet50", "ResNet101", "ResNet152"};
constexpr std::size_t first_resnet = 4;

Drawing draw_fig8(const Lab& lab) {
    std::vector<sim::Scenario> points;
    for (const ModelsContender& contender : models_contenders) {
        for (const char* model : models) {
            sim::Scenario point = testbed("star:8");
            point.systems = {*sim::parse_system(contender.system)};
            point.models = {model};
            point.batch = batch;
            point.scale = lab.pick(400.0, 40.0);
            point.iterations = lab.pick(3U, 4U);
            points.push_back(point);
        }
    }
    const std::vector<sim::Report> reports = lab.run(points);

    BarChart chart{.title = "Eight workers",
                   .y = {.label = "throughput relative to one worker alone", .from = 0},
                   .categories = {std::begin(models), std::end(models)},
                   .levels = {{.name = "no communication", .value = 1}}};
    for (std::size_t i = 0; i < reports.size(); ++i) {
        const std::size_t model = i % std::size(models);
        if (model == 0) chart.bars.push_back({.name = models_contenders[i / std::size(models)].name});
        const double alone = workload::find_model(models[model])->samples_per_s;
        chart.bars.back().values.push_back(samples_per_s(reports[i]) / alone);
    }
    // ATP's gain over system `i` for one model.
    const auto lead = [&](std::size_t i, std::size_t model) {
        return chart.bars[0].values[model] / chart.bars[i].values[model];
    };
    const auto greatest_lead = [&](std::size_t i, std::size_t from, std::size_t to) {
        double most = 0;
        for (std::size_t model = from; model < to; ++model) most = std::max(most, lead(i, model));
        return most;
    };
    double least = lead(1, 0);
    Drawing drawing;
    for (std::size_t i = 1; i < std::size(models_contenders); ++i) {
        for (std::size_t model = 0; model < std::size(models); ++model) least = std::min(least, lead(i, model));
        drawing.checks.push_back({.what = std::string("largest speedup of ATP over ") + models_contenders[i].name,
                                  .value = greatest_lead(i, 0, std::size(models)),
                                  .least = models_contenders[i].least_lead,
                                  .most = models_contenders[i].most_lead});
    }
    drawing.checks.insert(drawing.checks.begin(),
                          at_least(0.99, "smallest speedup of ATP over any other system, over all models", least));
    drawing.checks.push_back(
        at_least(1.1, "largest speedup of ATP over BytePS NtoN RDMA with VGG models, relative to ResNet models",
                 greatest_lead(1, 1, first_resnet) / greatest_lead(1, first_resnet, std::size(models))));
    drawing.charts = {chart};
    return drawing;
}

}  // namespace

const Figure fig8{
    .id = "fig8",
    .title = "Training throughput of seven models",
    .source = "ATP, section 5.2.1",
    .claim =
        "With eight workers, ATP is the fastest system for every model. Its largest speedups are 1.5 over BytePS "
        "with N servers and 1.24 over Horovod (both over RDMA), 2.5 and 4.2 over the same systems over TCP, 8.7 over "
        "BytePS with one server over TCP, and 1.5 over SwitchML. VGG models gain more than ResNet models.",
    .setup =
        "The batch size is 32; it is derived from a goodput of 20 Gbit/s (section 5.5) and 160 images per second "
        "(appendix D.2). The times of layers are those of an older GPU (research/simulate.md). If the backward pass "
        "hides all communication, all systems are equally fast; a ratio of at least 0.99 therefore counts as equally "
        "fast.",
    .draw = draw_fig8,
};

}  // namespace atp::figure
