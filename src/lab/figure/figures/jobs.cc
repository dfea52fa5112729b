// SPDX-License-Identifier: Apache-2.0
// Two jobs side by side on one switch.
#include <algorithm>
#include <array>
#include <utility>

#include "figure/figures/claims.h"
#include "figure/figures/figures.h"
#include "figure/figures/points.h"

namespace atp::figure {
namespace {

// Aggregators: seven eighths of two windows.
constexpr std::uint32_t memory = 224;

constexpr Input inputs_of_fig20[] = {
    {"two jobs on one switch", Origin::paper, "appendix D.2"},
    {"224 aggregators", Origin::from_claim, "seven eighths of the windows, so that the jobs lose speed"},
    {"batch", Origin::free, "16 samples, so that computation does not hide communication"},
};

constexpr Input inputs_of_draft_fig10[] = {
    {"32 and 62 lanes of SwitchML and ATP", Origin::paper, "ATP, section 5.2.1 and appendix D.1"},
    {"aggregators", Origin::free, "256, two windows; as many slots with shadow copies take the same memory"},
    {"batch", Origin::free, "16 samples, so that computation does not hide communication"},
};

sim::Scenario two_jobs(const Lab& lab, std::vector<unsigned> workers, std::vector<std::string> models) {
    sim::Scenario point = testbed("star:5");
    point.batch = lab.free("batch", 16U);
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
    Drawing drawing;
    drawing.checks = checks_of_fig20({pair_of(chart, 0), pair_of(chart, 1), pair_of(chart, 2)},
                                     reports[2].jobs[1].samples_per_s / reports[2].jobs[0].samples_per_s);
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
            point.aggregators = lab.free("aggregators", whole_windows);
            // Two copies of 32 lanes take the memory of 62 lanes, up to 3 %.
            point.switchml.pool = point.aggregators;
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
    Drawing drawing;
    drawing.checks = checks_of_draft_fig10(charts[0], charts[1]);
    drawing.charts = {charts[0], charts[1]};
    return drawing;
}

}  // namespace

std::vector<Check> checks_of_fig20(const std::array<PairSpeeds, 3>& pairs, double two_to_five) {
    const auto& [equals, unequal, mixed] = pairs;
    return {equal(1, "equal jobs: first relative to second", equals.first / equals.second),
            equal(0.9, "equal jobs: slower of both together, relative to alone", equals.slower()),
            number(159.3 / 145.6, same_ratio, "two workers relative to five, in samples per second", two_to_five),
            equal(0.95, "VGG16 next to ResNet50, relative to alone", mixed.first),
            equal(0.9, "ResNet50 next to VGG16, relative to alone", mixed.second),
            order("VGG16 keeps more of its speed than ResNet50", std::array{mixed.first, mixed.second})};
}

std::vector<Check> checks_of_draft_fig10(const BarChart& same, const BarChart& mixed) {
    const auto both = [&](std::size_t i) { return pair_of(same, i).first + pair_of(same, i).second; };
    const PairSpeeds atp = pair_of(mixed, 0);
    const PairSpeeds peers[] = {pair_of(mixed, 1), pair_of(mixed, 2)};
    const std::string together = "same model: ATP's jobs together, relative to ";
    return {order(together + "the fastest other pair", std::array{both(0), std::max(both(1), both(2))}),
            equal(1, "same model: ATP's first job relative to its second job",
                  pair_of(same, 0).first / pair_of(same, 0).second),
            order("VGG16 next to ResNet50: ATP relative to the fastest other system",
                  std::array{atp.first, std::max(peers[0].first, peers[1].first)}),
            order("ResNet50 next to VGG16: the fastest other system relative to ATP",
                  std::array{std::max(peers[0].second, peers[1].second), atp.second}),
            order("VGG16 with ATP: next to ResNet50, relative to next to VGG16",
                  std::array{atp.first, pair_of(same, 0).first}),
            notified(together + same.categories[1], both(0) / both(1)),
            notified(together + same.categories[2], both(0) / both(2))};
}

const Figure fig20{
    .id = "fig20",
    .title = "Two jobs share a switch",
    .source = "ATP, appendix D.2",
    .claim =
        "Two VGG16 jobs of three workers each are equally fast, and the throughput reduction for each is only 10%. The "
        "job with more workers performs slightly worse (145.6 image/s for 5 v.s. 159.3 image/s for 2 workers). Next to "
        "each other, VGG16 loses 5% and ResNet50 10%.",
    .setup =
        "Each job has its own hosts and server, batches of 16, and windows of 128 packets. The switch has 224 "
        "aggregators, so the jobs compete for its memory.",
    .differences =
        "VGG16 loses more than ResNet50, not less. Here, the backward pass of ResNet50 hides its sums: alone, "
        "ResNet50 is within 1 % of its speed without communication. ResNet50 therefore uses little of the memory and "
        "does not wait for it, while VGG16 waits for its sums.",
    .inputs = inputs_of_fig20,
    .draw = draw_fig20,
};

const Figure draft_fig10{
    .id = "draft-fig10",
    .title = "A shared switch compared with a divided one",
    .source = "ATP's earlier submission, section 7.3.2",
    .claim =
        "Same model: ATP outperforms all other settings, and two ATP jobs share the memory equally. VGG16 and "
        "ResNet50: "
        "ATP outperforms all the other systems on VGG16, which is faster than next to another VGG16, but has lower "
        "throughput on ResNet50.",
    .setup =
        "The jobs are those of fig20, with three workers each. The switch has 256 aggregators, or 256 slots of "
        "SwitchML, "
        "whose shorter packets and shadow copies take the same memory. BytePS has one server and uses TCP.",
    .inputs = inputs_of_draft_fig10,
    .draw = draw_draft_fig10,
};

}  // namespace atp::figure
