// SPDX-License-Identifier: Apache-2.0
// Three training jobs on one switch with few aggregators.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "figure/figures/claims.h"
#include "figure/figures/points.h"
#include "figure/real/real_figures.h"
#include "figure/real/trained.h"

namespace atp::figure {
namespace {

constexpr unsigned jobs_of_trial = 3;
constexpr std::int64_t rate_of_nine = 80'000'000;
constexpr std::uint32_t slots_of_packet = 4;  // a channel has so many slots for each packet in flight

constexpr Input inputs_of_real_sharing[] = {
    {"three VGG16 jobs of three workers, each with hosts of its own", Origin::paper, "section 5.4.1"},
    {"a server with 0.6 of a link for each job", Origin::paper, "appendix D.1: 60 of 100 Gbit/s"},
    {"aggregators at the peak", Origin::measured, "least static parts within 5 % of the peak, in the same run"},
    {"time of layers", Origin::paper, "SwitchML, table 1, ideal throughput"},
    {"batch", Origin::free, "32 samples"},
};

// With so many packets of a job in flight, and so many aggregators for all jobs.
Trial vgg_trial(const Lab& lab, unsigned jobs, std::uint32_t window, std::uint32_t aggregators, double scale = 400) {
    Trial trial = trained_trial("star:3", rate_of_nine,
                                {.model = "VGG16",
                                 .scale = lab.quick() ? 2 * scale : scale,
                                 .batch = lab.free("batch", 32U),
                                 .iterations = lab.pick(2U, 3U)});
    move_servers(trial, jobs);
    trial.network.jobs = jobs;
    trial.network.aggregators = aggregators;
    trial.network.most_packets = window;
    trial.network.window_log2 = static_cast<std::uint8_t>(std::countr_zero(window * slots_of_packet));
    trial.network.placement = sim::Placement::separate;
    trial.flags.push_back(fmt::format("--rank-flags=--window {}", window));
    return trial;
}

// Each job has a part to itself, and as large a window as fits.
Trial divided_trial(const Lab& lab, unsigned jobs, std::uint32_t aggregators) {
    const std::uint32_t window = std::bit_floor(std::max(aggregators / jobs, 1U));
    Trial trial = vgg_trial(lab, jobs, window, aggregators);
    trial.network.partition = trial.network.linear = true;
    trial.flags.push_back(fmt::format("--switch-flags=--linear --partition {}", jobs));
    return trial;
}

// As in the paper: the least part with which a job reaches its peak throughput, here within 5 %, by the median of all
// rounds. Jobs with parts of their own do not notice each other, so one is enough. Of less than four packets, a quarter
// would be no window.
std::uint32_t peak_window(const Lab& lab) {
    const auto windows = lab.pick<std::vector<std::uint32_t>>({4, 16}, {4, 8, 16, 32});
    std::vector<Trial> trials;
    for (const std::uint32_t window : windows) trials.push_back(divided_trial(lab, 1, window));
    std::vector<double> speeds;
    for (const Outcome& outcome : measured(lab, trials)) {
        speeds.push_back(outcome.number("/systems/atp/jobs_steps_per_s/0"));
    }
    const double enough = std::ranges::max(speeds) / (1 + equality);
    const auto least = std::ranges::find_if(speeds, [&](double speed) { return speed >= enough; });
    return windows[static_cast<std::size_t>(least - speeds.begin())];
}

double steps_per_s(const Outcome& outcome) {
    double sum = 0;
    for (std::size_t job = 0; job < jobs_of_trial; ++job) sum += 1 / outcome.seconds("atp", job);
    return sum / jobs_of_trial;
}

Drawing draw_real_fig13a(const Lab& lab) {
    const std::vector<double> shares =
        lab.pick<std::vector<double>>({1, 0.5, 1.0 / 3, 0.25}, {1, 0.67, 0.5, 1.0 / 3, 0.25});
    const std::uint32_t window = peak_window(lab);
    std::vector<Trial> trials;
    std::vector<sim::Scenario> points;
    for (const bool dynamic : {true, false}) {
        for (const double share : shares) {
            const auto aggregators = static_cast<std::uint32_t>(std::lround(share * jobs_of_trial * window));
            trials.push_back(dynamic ? vgg_trial(lab, jobs_of_trial, window, aggregators)
                                     : divided_trial(lab, jobs_of_trial, aggregators));
            points.push_back(trials.back().network);
        }
    }
    const std::vector<Outcome> outcomes = measured(lab, trials);
    const std::vector<sim::Report> reports = lab.run(points);

    LineChart chart{.title = "Three VGG16 jobs at 80 Mbit/s",
                    .x = {.label = "aggregators, % of those that peak throughput needs"},
                    .y = {.label = "steps per second, relative to static parts with 100 %", .from = 0},
                    .lines = {{.name = "dynamic (ATP)"}, {.name = "static parts"}}};
    for (std::size_t i = 0; i < 2; ++i) chart.lines.push_back({.name = chart.lines[i].name + std::string(simulated)});
    for (std::size_t i = 0; i < trials.size(); ++i) {
        const std::size_t line = i / shares.size();
        for (const std::size_t each : {line, line + 2}) {
            chart.lines[each].x.push_back(shares[i % shares.size()] * 100);
        }
        chart.lines[line].y.push_back(steps_per_s(outcomes[i]) / steps_per_s(outcomes[shares.size()]));
        chart.lines[line + 2].y.push_back(samples_per_s(reports[i]) / samples_per_s(reports[shares.size()]));
    }
    Drawing drawing;
    drawing.checks = checks_of_parts(chart, shares);
    drawing.checks.push_back(notified("aggregators at the peak", jobs_of_trial * window));
    drawing.charts = {chart};
    return drawing;
}

enum class Adder : std::uint8_t { network, server };

// Packets a second that were added there, one line for each job, while all jobs run.
std::vector<Line> added_over_time(const Outcome& outcome, Adder adder) {
    const nlohmann::json& samples = outcome.of_round("atp", "additions");
    std::vector<Line> lines;
    const nlohmann::json* before = nullptr;
    double begin = 0;
    for (const nlohmann::json& sample : samples) {
        const nlohmann::json& counts = sample.at(1);
        if (counts.size() < jobs_of_trial && before == nullptr) continue;
        if (counts.size() < jobs_of_trial) break;
        const double now = sample.at(0).get<double>();
        if (before == nullptr) begin = now;
        for (std::size_t job = 0; const auto& [number, pair] : counts.items()) {
            if (before == nullptr) lines.push_back({.name = fmt::format("job {}", job + 1), .markers = false});
            if (before != nullptr) {
                const double added = pair.at(static_cast<std::size_t>(adder)).get<double>() -
                                     before->at(1).at(number).at(static_cast<std::size_t>(adder)).get<double>();
                lines[job].x.push_back(now - begin);
                lines[job].y.push_back(added / (now - before->at(0).get<double>()));
            }
            ++job;
        }
        before = &sample;
    }
    if (lines.empty() || lines.front().x.empty()) throw Failed("bench/cluster has no samples of three jobs");
    return lines;
}

// The jobs of fig13a, in the time of some iterations.
Drawing sampled_jobs(const Lab& lab, double share, double scale, const char* title, Adder adder) {
    const std::uint32_t window = peak_window(lab);
    const auto aggregators = static_cast<std::uint32_t>(std::lround(share * jobs_of_trial * window));
    Trial trial = vgg_trial(lab, jobs_of_trial, window, aggregators, scale);
    for (const char* word : {"--sample", "100ms"}) trial.flags.emplace_back(word);
    Drawing drawing;
    drawing.charts = {LineChart{
        .title = title,
        .x = {.label = "time, s", .from = 0},
        .y = {.label = fmt::format("packets added by the {} per second", adder == Adder::server ? "servers" : "switch"),
              .from = 0},
        .lines = added_over_time(measured(lab, trial), adder)}};
    return drawing;
}

Drawing draw_real_fig13b(const Lab& lab) {
    Drawing drawing = sampled_jobs(lab, 1, 200, "100 % of the aggregators that peak throughput needs", Adder::server);
    const double millisecond = 1e-3 * 100e9 / rate_of_nine;
    drawing.checks = checks_of_settling(std::get<LineChart>(drawing.charts[0]).lines, millisecond);
    // The paper's 500 ms are ten minutes on these links, and the run is shorter.
    drawing.checks[1] = notified(drawing.checks[1].what + ", on the test bed's links", drawing.checks[1].value);
    return drawing;
}

Drawing draw_real_fig13c(const Lab& lab) {
    Drawing drawing =
        sampled_jobs(lab, 1.0 / 3, 100, "33 % of the aggregators that peak throughput needs", Adder::network);
    drawing.checks = {check_of_off_phases(std::get<LineChart>(drawing.charts[0]).lines)};
    return drawing;
}

}  // namespace

const Figure real_fig13a{
    .id = "fig13a",
    .setup =
        "All jobs start at the same time. Their servers share a host, whose link has 0.6 of the rate for each of "
        "them. A job with a static part has a window of the largest power of two that fits into it, and the "
        "throughput with the whole part is interpolated linearly between 25 and 50 %. Ranks sleep for the time of "
        "the layers, which is 1,250 times longer on links that are 1,250 times slower.",
    .differences =
        "A round trip of these links holds four packets, and computation hides the rest, so even a static window of "
        "one "
        "packet costs nothing. In the paper it holds 660. Where it holds 64, in the simulator, sharing gains "
        "([experiment](experiments.md#longer-round-trips)).",
    .basis = Basis::sockets,
    .inputs = inputs_of_real_sharing,
    .seconds = 260,
    .draw = draw_real_fig13a,
};

const Figure real_fig13b{
    .id = "fig13b",
    .setup =
        "The jobs of fig13a. Additions are counted by the switch each 100 ms, which are 0.08 ms of links that are "
        "1,250 times faster: the time is compared after this division.",
    .differences =
        "At this peak, twelve packets are in flight for twelve aggregators, so some always collide. With twice as many "
        "aggregators, the servers soon add nothing ([experiment](experiments.md#twice-the-aggregators)).",
    .basis = Basis::sockets,
    .inputs = inputs_of_real_sharing,
    .seconds = 120,
    .draw = draw_real_fig13b,
};

const Figure real_fig13c{
    .id = "fig13c",
    .setup =
        "The jobs of fig13a, with longer iterations: a sample of 100 ms is a thirtieth of one. The height of the "
        "increase is only plotted in the paper.",
    .basis = Basis::sockets,
    .inputs = inputs_of_real_sharing,
    .seconds = 140,
    .draw = draw_real_fig13c,
};

}  // namespace atp::figure
