// SPDX-License-Identifier: Apache-2.0
// Two jobs side by side on one switch.
#include <algorithm>
#include <utility>

#include "figure/figures/figures.h"
#include "figure/figures/points.h"

namespace atp::figure {
namespace {

// Aggregators: seven eighths of two windows.
constexpr std::uint32_t memory = 224;

sim::Scenario two_jobs(const Lab& lab, std::vector<unsigned> workers, std::vector<std::string> models) {
    sim::Scenario point = testbed("star:5");
    point.batch = 16;  // communication that computation does not hide
    point.window_log2 = 7;
    point.aggregators = memory;
    point.placement = sim::Placement::separate;
    point.jobs = static_cast<unsigned>(workers.size());
    point.job_workers = std::move(workers);
    point.models = std::move(models);
    point.scale = lab.pick(100.0, 20.0);
    point.iterations = lab.pick(3U, 5U);
    return point;
}

Drawing draw_fig20(const Lab& lab) {
    const std::vector<sim::Report> reports =
        lab.run({two_jobs(lab, {3, 3}, {"VGG16"}), two_jobs(lab, {3}, {"VGG16"}),  //
                 two_jobs(lab, {5, 2}, {"VGG16"}), two_jobs(lab, {5}, {"VGG16"}), two_jobs(lab, {2}, {"VGG16"}),
                 two_jobs(lab, {3, 3}, {"VGG16", "ResNet50"}), two_jobs(lab, {3}, {"ResNet50"})});
    const auto beside = [&](std::size_t together, std::size_t job, std::size_t alone) {
        return reports[together].jobs[job].samples_per_s / samples_per_s(reports[alone]);
    };
    const BarChart chart{
        .title = "Two jobs on one switch",
        .y = {.label = "samples per second, relative to alone"},
        .categories = {"3 and 3 workers", "5 and 2 workers", "VGG16 and ResNet50"},
        .bars = {{.name = "first job", .values = {beside(0, 0, 1), beside(2, 0, 3), beside(5, 0, 1)}},
                 {.name = "second job", .values = {beside(0, 1, 1), beside(2, 1, 4), beside(5, 1, 6)}}}};
    const auto& first = chart.bars[0].values;
    const auto& second = chart.bars[1].values;
    Drawing drawing;
    drawing.checks = {
        between(0.95, 1.05, "equal jobs: first relative to second", first[0] / second[0]),
        between(0.75, 0.98, "equal jobs: slower of both together, relative to alone", std::min(first[0], second[0])),
        at_least(1, "two workers relative to five, in samples per second",
                 reports[2].jobs[1].samples_per_s / reports[2].jobs[0].samples_per_s),
        notified("VGG16 next to ResNet50, relative to alone", first[2]),
        notified("ResNet50 next to VGG16, relative to alone", second[2]),
        at_least(1, "share of speed that VGG16 keeps next to ResNet50, relative to ResNet50's share",
                 first[2] / second[2])};
    drawing.charts = {chart};
    return drawing;
}

// Every system can use all of these aggregators: the parts of SwitchML are powers of two.
constexpr std::uint32_t whole_windows = 256;

struct Pair {
    const char* name;
    const char* first;
    const char* second;
};

Drawing draw_draft_fig10(const Lab& lab) {
    constexpr Pair pairs[] = {{"ATP + ATP", "atp", "atp"},
                              {"SwitchML half + half", "switchml", "switchml"},
                              {"SwitchML full + BytePS", "switchml", "ps:tcp"}};
    std::vector<sim::Scenario> points;
    for (const char* second : {"VGG16", "ResNet50"}) {
        for (const Pair& pair : pairs) {
            sim::Scenario point = two_jobs(lab, {3, 3}, {"VGG16", second});
            point.systems = {*sim::parse_system(pair.first), *sim::parse_system(pair.second)};
            point.aggregators = whole_windows;
            point.switchml.lanes = point.lanes;
            point.switchml.pool = whole_windows / 2;  // each slot has a shadow copy
            points.push_back(point);
        }
    }
    const std::vector<sim::Report> reports = lab.run(points);
    std::vector<BarChart> charts;
    for (std::size_t i = 0; i < reports.size(); ++i) {
        if (i % std::size(pairs) == 0) {
            charts.push_back({.title = i == 0 ? "VGG16 and VGG16" : "VGG16 and ResNet50",
                              .y = {.label = "samples per second of each worker"},
                              .bars = {{.name = "first job"}, {.name = "second job"}}});
        }
        charts.back().categories.emplace_back(pairs[i % std::size(pairs)].name);
        for (std::size_t job = 0; job < 2; ++job) {
            charts.back().bars[job].values.push_back(reports[i].jobs[job].samples_per_s);
        }
    }
    const auto both = [](const BarChart& chart, std::size_t i) {
        return chart.bars[0].values[i] + chart.bars[1].values[i];
    };
    Drawing drawing;
    drawing.checks = {at_least(1, "same model: ATP's jobs together, relative to SwitchML with half of the memory each",
                               both(charts[0], 0) / both(charts[0], 1)),
                      at_least(1, "same model: ATP's jobs together, relative to SwitchML next to BytePS",
                               both(charts[0], 0) / both(charts[0], 2)),
                      between(0.95, 1.05, "same model: ATP's first job relative to its second job",
                              charts[0].bars[0].values[0] / charts[0].bars[1].values[0])};
    drawing.charts = {charts[0], charts[1]};
    return drawing;
}

}  // namespace

const Figure fig20{
    .id = "fig20",
    .title = "Two jobs share a switch",
    .source = "ATP, appendix D.2",
    .claim =
        "Two VGG16 jobs of three workers each are equally fast, and lose 10 % of their speed alone. If one job has "
        "five workers and the other two, the job with two is slightly faster. If VGG16 runs next to ResNet50, VGG16 "
        "loses less (5 %) than ResNet50 (10 %).",
    .setup =
        "Each job has its own hosts and server, batches of 16, and windows of 128 packets. The switch has 224 "
        "aggregators, so the jobs compete for its memory.",
    .differences =
        "VGG16 loses more than ResNet50, not less. Here, the backward pass of ResNet50 hides its sums: alone, "
        "ResNet50 is within 1 % of its speed without communication. ResNet50 therefore uses little of the memory and "
        "does not wait for it, while VGG16 waits for its sums.",
    .draw = draw_fig20,
};

const Figure draft_fig10{
    .id = "draft-fig10",
    .title = "A shared switch compared with a divided one",
    .source = "ATP's earlier submission, section 7.3.2",
    .claim =
        "Two jobs of the same model are fastest with ATP. SwitchML gives each job half of the memory, or one job all "
        "of it and the other none.",
    .setup =
        "The jobs are those of fig20, with three workers each. The switch has 256 aggregators. SwitchML's parts are "
        "powers of two, so SwitchML can also use all of them. A slot of SwitchML has as many lanes as an aggregator, "
        "and a shadow copy. The same memory therefore has half as many slots as aggregators. BytePS has one server "
        "and uses TCP.",
    .differences =
        "SwitchML with half of the memory for each job is 8 % faster. The memory holds the windows of both jobs, so "
        "the jobs compete for links only. Packets of 62 lanes are 12 % longer with ATP's header than with "
        "SwitchML's. With 224 aggregators, which SwitchML has to round down, ATP is 14 % faster. With 128 "
        "aggregators, ATP is 6 % slower.",
    .draw = draw_draft_fig10,
};

}  // namespace atp::figure
