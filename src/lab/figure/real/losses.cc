// SPDX-License-Identifier: Apache-2.0
// Lost frames on real links.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <sstream>

#include "figure/figures/claims.h"
#include "figure/figures/points.h"
#include "figure/real/real_figures.h"
#include "figure/real/trained.h"

namespace atp::figure {
namespace {

constexpr std::int64_t rate = 60'000'000;

std::vector<double> losses_of_tensor(const Lab& lab) {
    return lab.pick<std::vector<double>>({1e-2}, {1e-4, 1e-3, 3e-3, 1e-2});
}

std::vector<double> losses_of_model(const Lab& lab) {
    return lab.pick<std::vector<double>>({1e-4, 1e-2}, {1e-4, 1e-3, 1e-2});
}

Trial tensor_trial(const Lab& lab) {
    Trial trial{.network = linked("star:8", rate), .systems = {}};
    trial.network.bytes = lab.pick<std::uint64_t>(2'000'000, 10'000'000);
    return trial;
}

Trial model_trial(const Lab& lab, const char* model, double scale) {
    return trained_trial("star:8", rate,
                         {.model = model,
                          .scale = lab.quick() ? 4 * scale : scale,
                          .batch = lab.free("batch", 32U),
                          .iterations = lab.pick(1U, 2U)});
}

// The simulation of a system, with the slots and the timeout of SwitchML that were the fastest.
sim::Scenario network_of(const Trial& trial, const std::string& system, const Outcome& outcome) {
    sim::Scenario network = trial.network;
    network.systems = {*sim::parse_system(system)};
    const nlohmann::json::json_pointer variant("/systems/" + system + "/variant");
    std::istringstream words(outcome.report().value(variant, ""));  // "64 slots, 25000us"
    unsigned slots = 0;
    unsigned timeout_us = 0;
    std::string unit;
    if (words >> slots >> unit >> timeout_us) {
        network.switchml = {.pool = slots, .lanes = network.lanes};
        network.switchml.timeout = std::chrono::microseconds(timeout_us);
    }
    return network;
}

// Goodput relative to no loss: lines of ATP, of SwitchML, and of their simulations.
LineChart kept_on_links(const Lab& lab, const Trial& base, std::string title, const std::vector<double>& losses) {
    std::vector<Trial> trials;
    for (std::size_t i = 0; i <= losses.size(); ++i) {
        trials.push_back(base);
        trials.back().systems = {"atp", "switchml"};
        trials.back().network.faults.loss = i == 0 ? 0 : losses[i - 1];
        trials.back().network.faults.lossy_worker = 0;
    }
    const std::vector<Outcome> outcomes = measured(lab, trials);
    LineChart chart{.title = std::move(title),
                    .x = {.label = "frames lost at one worker, %", .logarithmic = true},
                    .y = {.label = "throughput relative to no loss", .from = 0},
                    .lines = {{.name = "ATP"}, {.name = "SwitchML"}}};
    for (std::size_t k = 0; k < 2; ++k) {
        const std::string& system = trials[0].systems[k];
        std::vector<sim::Scenario> points;
        for (std::size_t i = 0; i < trials.size(); ++i) points.push_back(network_of(trials[i], system, outcomes[i]));
        const std::vector<sim::Report> reports = lab.run(points);
        Line line{.name = chart.lines[k].name + std::string(simulated)};
        for (std::size_t i = 0; i < losses.size(); ++i) {
            line.x.push_back(losses[i] * 100);
            line.y.push_back(settled_goodput_gbps(reports[i + 1]) / settled_goodput_gbps(reports[0]));
            chart.lines[k].y.push_back(outcomes[i + 1].goodput_bps(system) / outcomes[0].goodput_bps(system));
        }
        chart.lines[k].x = line.x;
        chart.lines.push_back(std::move(line));
    }
    return chart;
}

constexpr Input inputs_of_real_losses[] = {
    {"eight workers, one loses packets in both directions", Origin::paper, "section 5.2.3"},
    {"slots and timeout of SwitchML", Origin::measured, "the fastest of three pairs, before each trial"},
    {"congestion windows halve", Origin::measured, "as the product; the paper switches this off"},
    {"time of layers", Origin::paper, "SwitchML, table 1, ideal throughput"},
    {"batch", Origin::free, "32 samples"},
};

Drawing draw_real_fig10(const Lab& lab) {
    const std::vector<double> losses = losses_of_model(lab);
    const LineChart of_model = kept_on_links(lab, model_trial(lab, "VGG16", 200), "VGG16", losses);
    const LineChart of_micro =
        kept_on_links(lab, tensor_trial(lab), "Microbenchmark, tensors of 10 MB", losses_of_tensor(lab));
    const std::vector<double> model = leads_of(of_model);
    const std::vector<double> micro = leads_of(of_micro);
    Drawing drawing;
    drawing.checks = {
        number(paper_lead, same_ratio, "largest gain: share that ATP keeps, relative to SwitchML's share",
               std::max(std::ranges::max(model), std::ranges::max(micro))),
        degrades_less("VGG16", losses, model),
        degrades_less("microbenchmark", losses_of_tensor(lab), micro),
        equal(1, "ATP, VGG16 at 0.01 %: throughput relative to no loss", of_model.lines[0].y.front()),
        notified("ATP, microbenchmark at 1 %: throughput relative to no loss", of_micro.lines[0].y.back()),
        notified("SwitchML, microbenchmark at 1 %: throughput relative to no loss", of_micro.lines[1].y.back())};
    drawing.charts = {of_model, of_micro};
    return drawing;
}

Drawing draw_real_draft_fig7(const Lab& lab) {
    const std::vector<double> losses = losses_of_model(lab);
    const LineChart chart = kept_on_links(lab, model_trial(lab, "ResNet50", 130), "ResNet50", losses);
    Drawing drawing;
    drawing.checks = {degrades_less("ResNet50", losses, leads_of(chart)),
                      notified("ATP at 1 %: throughput relative to no loss", chart.lines[0].y.back()),
                      notified("SwitchML at 1 %: throughput relative to no loss", chart.lines[1].y.back())};
    drawing.charts = {chart};
    return drawing;
}

}  // namespace

const Figure real_fig10{
    .id = "fig10",
    .setup =
        "Frames are lost at the link of one of eight workers, of 60 Mbit/s, in both directions, by eBPF at both of its "
        "ends. SwitchML has the fastest of three pairs of slots and timeout. A round trip takes milliseconds at this "
        "rate, so a timeout of 1 ms would be shorter than it. Ranks of VGG16 sleep for the time of the layers, which "
        "is as many times longer as the links are slower.",
    .differences =
        "The backward pass hides VGG16's communication, repetitions included. If hosts reach 20 instead of 100 Gbit/s, "
        "ATP keeps more of its speed than SwitchML ([experiment](experiments.md#a-fifth-of-the-rate)), but not 1.34 "
        "times as much. That depends on how long SwitchML waits for a lost packet: the paper's waits 1 ms, and this "
        "one "
        "as long as is fastest ([experiment](experiments.md#switchmls-timeout)).",
    .basis = Basis::sockets,
    .inputs = inputs_of_real_losses,
    .seconds = 320,
    .draw = draw_real_fig10,
};

const Figure real_draft_fig7{
    .id = "draft-fig7",
    .setup = "As fig10, which draws VGG16. The plotted values are not in the text.",
    .basis = Basis::sockets,
    .inputs = inputs_of_real_losses,
    .seconds = 180,
    .draw = draw_real_draft_fig7,
};

}  // namespace atp::figure
