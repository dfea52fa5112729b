// SPDX-License-Identifier: Apache-2.0
// SwitchML beside Gloo, on links that lose frames.
#include <string>
#include <utility>
#include <vector>

#include "figure/figures/claims.h"
#include "figure/real/real_figures.h"
#include "figure/trial.h"

namespace atp::figure {
namespace {

// Of each system, and of its simulation.
struct LossTimes {
    std::vector<double> switchml;
    std::vector<double> gloo;
    std::vector<double> simulated_switchml;
};

constexpr Input inputs_of_lossy_links[] = {
    {"loss on every link", Origin::paper, "section 5.5"},
    {"64 slots and a timeout of 50 ms", Origin::measured, "the fastest at 1 % of 16, 64 and 256 slots"},
};

Trial lossy_links(const Lab& lab, double loss) {
    sim::Scenario links = linked("star:8", 50'000'000);
    links.bytes = lab.pick<std::uint64_t>(2'000'000, 4'000'000);
    links.faults.loss = loss;
    Trial trial = switchml_trial(links, {.pool = 64, .lanes = links.lanes, .timeout = std::chrono::milliseconds(50)});
    trial.systems.emplace_back("gloo");
    return trial;
}

LossTimes times_of(const Lab& lab, const std::vector<double>& losses) {
    std::vector<Trial> trials;
    std::vector<sim::Scenario> points;
    for (const double loss : losses) trials.push_back(lossy_links(lab, loss));
    for (const Trial& trial : trials) points.push_back(trial.network);
    const std::vector<sim::Report> reports = lab.run(points);
    const std::vector<Outcome> outcomes = measured(lab, trials);
    LossTimes times;
    for (std::size_t i = 0; i < losses.size(); ++i) {
        times.switchml.push_back(outcomes[i].seconds("switchml"));
        times.gloo.push_back(outcomes[i].seconds("gloo"));
        times.simulated_switchml.push_back(1 / reports[i].jobs.front().goodput_bits_per_s());
    }
    return times;
}

Drawing draw_real_switchml_fig5(const Lab& lab) {
    const std::vector<double> losses{0, 1e-4, 1e-3, 1e-2};
    const LossTimes times = times_of(lab, losses);
    LineChart chart{.title = "Eight workers at 50 Mbit/s, loss on every link",
                    .x = {.label = "frames lost, %", .logarithmic = true},
                    .y = {.label = "time relative to no loss", .logarithmic = true, .from = 1}};
    const std::pair<std::string, const std::vector<double>*> curves[] = {
        {"SwitchML", &times.switchml},
        {"Gloo", &times.gloo},
        {"SwitchML" + std::string(simulated), &times.simulated_switchml}};
    for (const auto& [name, seconds] : curves) {
        Line line{.name = name};
        for (std::size_t i = 1; i < losses.size(); ++i) {
            line.x.push_back(losses[i] * 100);
            line.y.push_back((*seconds)[i] / seconds->front());
        }
        chart.lines.push_back(std::move(line));
    }
    Drawing drawing;
    drawing.checks = checks_of_losses(chart.lines[0].y, "Gloo", chart.lines[1].y);
    drawing.checks.push_back(
        notified("at 0.1 %: SwitchML's time relative to Gloo's", times.switchml[2] / times.gloo[2]));
    drawing.checks.push_back(notified("at 1 %: SwitchML's time relative to Gloo's", times.switchml[3] / times.gloo[3]));
    drawing.charts = {chart};
    return drawing;
}

}  // namespace

const Figure real_switchml_fig5{
    .id = "switchml-fig5",
    .setup =
        "eBPF loses frames at both ends of every link, alike for UDP and TCP. SwitchML's packets have 352 elements, as "
        "Gloo's frames are full, and its slots fill a link. Gloo has the fastest of its four algorithms.",
    .differences =
        "Here Gloo slows down no more than SwitchML, which stays faster (last rows). TCP waits at least 200 ms for a "
        "lost packet. The paper's tensors take less time than that, and those here three times as much. With smaller "
        "tensors, Gloo slows down more ([experiment](experiments.md#smaller-tensors)).",
    .basis = Basis::sockets,
    .inputs = inputs_of_lossy_links,
    .seconds = 150,
    .draw = draw_real_switchml_fig5,
};

}  // namespace atp::figure
