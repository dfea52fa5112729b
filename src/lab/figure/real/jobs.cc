// SPDX-License-Identifier: Apache-2.0
// Two jobs side by side on one real switch. They share its memory, but no link.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <limits>

#include "figure/figures/claims.h"
#include "figure/real/real_figures.h"
#include "figure/trial.h"

namespace atp::figure {
namespace {

constexpr std::int64_t rate_of_jobs = 100'000'000;
// The paper's jobs use 660 aggregators each, with windows of 200 packets; windows have 128 packets here.
constexpr std::uint32_t memory_of_jobs = 2 * 660 * 128 / 200;

constexpr Input inputs_of_two_jobs[] = {
    {"two jobs on one switch, with hosts of their own", Origin::paper, "appendix D.2; earlier submission, 7.3.2"},
    {"computation relative to transfer", Origin::paper, "100 Gbit/s; SwitchML, table 1, ideal throughput"},
    {"batch", Origin::free, "32 samples; the papers do not say"},
    {"3.3 aggregators for each packet of a window", Origin::paper, "1,980 for three jobs, section 5.4; 60 kB, 3.7"},
};

using Workers = std::vector<unsigned>;
using Models = std::vector<std::string>;

Trial trial_of(const Lab& lab, Workers workers, Models models) {
    Trial trial{.network = training("star:5", rate_of_jobs, {"VGG16"}, lab.free("batch", 32U)), .systems = {"atp"}};
    trial.network.models = std::move(models);  // all have VGG16's scale
    trial.network.placement = sim::Placement::separate;
    trial.network.jobs = static_cast<unsigned>(workers.size());
    trial.network.job_workers = std::move(workers);
    trial.network.aggregators = memory_of_jobs;
    return trial;
}

Drawing draw_real_fig20(const Lab& lab) {
    const std::vector<Trial> trials{trial_of(lab, {3, 3}, {"VGG16"}), trial_of(lab, {3}, {"VGG16"}),  //
                                    trial_of(lab, {5, 2}, {"VGG16"}), trial_of(lab, {5}, {"VGG16"}),
                                    trial_of(lab, {2}, {"VGG16"}),    trial_of(lab, {3, 3}, {"VGG16", "ResNet50"}),
                                    trial_of(lab, {3}, {"ResNet50"})};
    const std::vector<Outcome> outcomes = measured(lab, trials);
    std::vector<sim::Scenario> points;
    for (const Trial& trial : trials) points.push_back(trial.network);
    const std::vector<sim::Report> reports = lab.run(points);

    BarChart chart{.title = "Two jobs on one switch, links of 100 Mbit/s",
                   .y = {.label = "throughput relative to alone", .from = 0},
                   .categories = {"3 and 3 workers", "5 and 2 workers", "VGG16 and ResNet50"},
                   .bars = {{.name = "first job"},
                            {.name = "second job"},
                            {.name = "first job, simulated"},
                            {.name = "second job, simulated"}}};
    struct Beside {
        std::size_t together;
        std::array<std::size_t, 2> alone;
    };
    for (const auto& [together, alone] : {Beside{0, {1, 1}}, Beside{2, {3, 4}}, Beside{5, {1, 6}}}) {
        for (unsigned job = 0; job < 2; ++job) {
            chart.bars[job].values.push_back(outcomes[alone[job]].seconds("atp") /
                                             outcomes[together].seconds("atp", job));
            chart.bars[job + 2].values.push_back(to_milliseconds(reports[alone[job]].jobs[0].iteration_time) /
                                                 to_milliseconds(reports[together].jobs[job].iteration_time));
        }
    }
    Drawing drawing;
    drawing.checks = checks_of_fig20({pair_of(chart, 0), pair_of(chart, 1), pair_of(chart, 2)},
                                     outcomes[2].seconds("atp", 0) / outcomes[2].seconds("atp", 1));
    drawing.charts = {chart};
    return drawing;
}

// Each SwitchML job has half of the slots, and a slot has two copies of its packet. The timeout is that of the
// benchmark for so many slots at this rate.
Trial divided(Trial trial) {
    const std::uint32_t slots = std::bit_floor(trial.network.aggregators / 4);
    trial.systems = {"switchml"};
    trial.flags = {fmt::format("--rank-flags=--window {} --switchml-timeout {}us", slots, 25'000 * slots / 64)};
    return trial;
}

Drawing draw_real_draft_fig10(const Lab& lab) {
    std::vector<Trial> trials;
    for (const char* second : {"VGG16", "ResNet50"}) {
        trials.push_back(trial_of(lab, {3, 3}, {"VGG16", second}));
        trials.back().systems = {"atp", "atp-none"};
        trials.push_back(divided(trials.back()));
    }
    const std::vector<Outcome> outcomes = measured(lab, trials);
    const std::vector<sim::Report> reports = lab.run({trials[0].network, trials[2].network});

    Drawing drawing;
    std::vector<BarChart> charts;
    for (std::size_t i = 0; i < reports.size(); ++i) {
        const sim::Scenario& network = trials[2 * i].network;
        BarChart chart{.title = i == 0 ? "VGG16 and VGG16" : "VGG16 and ResNet50",
                       .y = {.label = "throughput relative to no communication", .from = 0},
                       .categories = {"ATP + ATP", "SwitchML half + half", "NtoN over UDP"},
                       .bars = {{.name = "first job"},
                                {.name = "second job"},
                                {.name = "first job, simulated"},
                                {.name = "second job, simulated"}}};
        for (unsigned job = 0; job < 2; ++job) {
            const auto speed = [&](std::size_t trial, const char* system) {
                return training_speed(network, job, outcomes[2 * i + trial].seconds(system, job));
            };
            constexpr double none = std::numeric_limits<double>::quiet_NaN();
            chart.bars[job].values = {speed(0, "atp"), speed(1, "switchml"), speed(0, "atp-none")};
            chart.bars[job + 2].values = {training_speed(network, job, reports[i]), none, none};
        }
        charts.push_back(chart);
    }
    drawing.checks = checks_of_draft_fig10(charts[0], charts[1]);
    drawing.charts = {charts[0], charts[1]};
    return drawing;
}

}  // namespace

const Figure real_fig20{
    .id = "fig20",
    .setup =
        "Each job has its own hosts, links of 100 Mbit/s, and computation 1,000 times slower than on the test bed. Its "
        "server runs on the switch's host. The switch has 844 aggregators, 3.3 for each packet of both windows.",
    .differences =
        "The jobs share no link, and the backward pass hides their communication. If hosts reach 20 instead of 100 "
        "Gbit/s and the switch has 128 aggregators, one job still has its full speed, and each of two loses 8 % "
        "([experiment](experiments.md#fewer-aggregators)).",
    .basis = Basis::sockets,
    .inputs = inputs_of_two_jobs,
    .seconds = 260,
    .draw = draw_real_fig20,
};

const Figure real_draft_fig10{
    .id = "draft-fig10",
    .setup =
        "The jobs are those of fig20, with three workers each. SwitchML has slots for each job that are a power of "
        "two, so its two copies take 61 % of the memory of ATP's aggregators. Packets of both fill an MTU. NtoN is ATP "
        "without a switch, over "
        "UDP. "
        "SwitchML has a run of its own. SwitchML full beside BytePS is not measured.",
    .differences =
        "The jobs share no link, and the backward pass hides most communication. If hosts reach 20 instead of 100 "
        "Gbit/s, ATP leads NtoN ([experiment](experiments.md#a-fifth-of-the-rate)).",
    .basis = Basis::sockets,
    .inputs = inputs_of_two_jobs,
    .seconds = 180,
    .draw = draw_real_draft_fig10,
};

}  // namespace atp::figure
