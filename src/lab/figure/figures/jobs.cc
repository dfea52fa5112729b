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
        .y = {.label = "samples a second, of those alone"},
        .categories = {"3 and 3 workers", "5 and 2 workers", "VGG16 and ResNet50"},
        .bars = {{.name = "the first", .values = {beside(0, 0, 1), beside(2, 0, 3), beside(5, 0, 1)}},
                 {.name = "the second", .values = {beside(0, 1, 1), beside(2, 1, 4), beside(5, 1, 6)}}}};
    const auto& first = chart.bars[0].values;
    const auto& second = chart.bars[1].values;
    Drawing drawing;
    drawing.checks = {between(0.95, 1.05, "equal jobs: the first, times the second", first[0] / second[0]),
                      between(0.75, 0.98, "equal jobs: beside each other, times alone", std::min(first[0], second[0])),
                      at_least(1, "two workers, times five, in samples a second",
                               reports[2].jobs[1].samples_per_s / reports[2].jobs[0].samples_per_s),
                      notified("VGG16 beside ResNet50, times alone", first[2]),
                      notified("ResNet50 beside VGG16, times alone", second[2]),
                      at_least(1, "what VGG16 keeps beside ResNet50, times what that keeps", first[2] / second[2])};
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
                              .y = {.label = "samples a second at each worker"},
                              .bars = {{.name = "the first"}, {.name = "the second"}}});
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
    drawing.checks = {at_least(1, "same model: ATP's jobs together, times SwitchML's with half each",
                               both(charts[0], 0) / both(charts[0], 1)),
                      at_least(1, "same model: ATP's jobs together, times SwitchML beside BytePS",
                               both(charts[0], 0) / both(charts[0], 2)),
                      between(0.95, 1.05, "same model: ATP's first job, times its second",
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
        "Two VGG16 jobs of three workers get the same and lose 10 %; of five and two workers the two get slightly "
        "more; "
        "beside ResNet50, VGG16 loses less (5 %) than ResNet50 (10 %).",
    .setup =
        "Each job has hosts and a server of its own, batches of 16, and windows of 128 packets; the switch has 224 "
        "aggregators, so that its memory is what they share.",
    .differences =
        "Beside each other VGG16 loses more than ResNet50, not less: ResNet50's sums hide behind its backward pass "
        "here "
        "(alone it is within 1 % of its speed without communication), so it neither takes much of the memory nor "
        "waits for it, while VGG16 has to wait for its sums.",
    .draw = draw_fig20,
};

const Figure draft_fig10{
    .id = "draft-fig10",
    .title = "Sharing a switch, beside dividing it",
    .source = "ATP's earlier submission, section 7.3.2",
    .claim =
        "Two jobs of the same model get the most over ATP; SwitchML gives each half of the memory, or one all of it "
        "and "
        "the other none.",
    .setup =
        "The jobs of fig20, of three workers each, with 256 aggregators, of which SwitchML can use all too: its parts "
        "are powers of two. A slot of SwitchML has as many lanes as an aggregator and a shadow copy, so the same "
        "memory "
        "has half as many. BytePS has one server, over TCP.",
    .differences =
        "Two halves of SwitchML get 8 % more: the memory holds the windows of both jobs, so that links are what they "
        "share, and packets of 62 lanes are 12 % longer with ATP's header than with SwitchML's. With memory that "
        "SwitchML has to round down (224 aggregators) ATP is 14 % ahead, with half of it (128) 6 % behind.",
    .draw = draw_draft_fig10,
};

}  // namespace atp::figure
