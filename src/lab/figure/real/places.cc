// SPDX-License-Identifier: Apache-2.0
// Where gradients are added: in which switch, and in which aggregator.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "figure/figures/claims.h"
#include "figure/real/real_figures.h"
#include "figure/trial.h"

namespace atp::figure {
namespace {

constexpr Input links_of_fig9[] = {{"topology", Origin::paper, "figure 9"},
                                   {"links of 100 Mbit/s", Origin::measured, "bytes do not depend on them"}};

Drawing draw_real_fig9(const Lab& lab) {
    Trial trial{.network = linked("fig9", 100'000'000),
                .systems = {"atp", "atp-racks", "atp-nowhere"},
                .flags = {"--server", "host"}};
    trial.network.server = sim::ServerPlacement::dedicated;
    trial.network.bytes = lab.pick<std::uint64_t>(1'000'000, 8'000'000);
    const Outcome outcome = measured(lab, trial);
    std::vector<sim::Scenario> points(3, trial.network);
    points[1].aggregation = sim::Aggregation::racks;
    points[2].aggregation = sim::Aggregation::nowhere;
    const std::vector<sim::Report> reports = lab.run(points);

    Bars real{.name = "into the server"};
    Bars calculated{.name = real.name + std::string(simulated)};
    for (std::size_t i = 0; i < points.size(); ++i) {
        const sim::JobReport& job = reports[i].jobs.front();
        // The report of the simulator counts payloads of UDP, bench/cluster frames.
        const double headers = trial.network.overhead_bytes * static_cast<double>(job.server.packets);
        calculated.values.push_back((static_cast<double>(job.server.bytes) + headers) /
                                    static_cast<double>(job.tensor_bytes));
        real.values.push_back(
            outcome.number(fmt::format("/systems/{}/traffic_of_an_operation/server_received_bytes", trial.systems[i])) /
            outcome.number("/bytes"));
    }
    Drawing drawing;
    drawing.checks = checks_of_fig9(real.values);
    drawing.charts = {BarChart{.title = "Six workers in three racks; the server is in the last rack",
                               .y = {.label = "bytes of frames, relative to the tensor"},
                               .categories = {"ATP", "racks only (RSS)", "no aggregation"},
                               .bars = {real, calculated}}};
    return drawing;
}

struct RealScheme {
    const char* name;
    const char* flags;
    bool linear;
    bool partition;
};
constexpr RealScheme real_schemes[] = {{"hash-based dynamic (ATP)", "", false, false},
                                       {"linear-based dynamic", "--linear", true, false},
                                       {"static parts", "--linear --partition 8", true, true}};
constexpr unsigned most_jobs_here = 8;
constexpr std::uint32_t packets_of_a_job = 32;  // in flight, and aggregators of a static part

constexpr Input links_of_fig14[] = {
    {"up to eight jobs, as many aggregators as windows", Origin::paper, "section 5.4.2: 100 % of the peak"},
    {"windows of 32 packets", Origin::measured, "they fill links of 20 Mbit/s"},
};

Trial jobs_on_hosts_of_their_own(const Lab& lab, const RealScheme& scheme, unsigned jobs) {
    Trial trial{.network = linked("star:2", 20'000'000),
                .systems = {"atp"},
                .flags = {"--warmup", "0", fmt::format("--rank-flags=--window {}", packets_of_a_job)}};
    sim::Scenario& network = trial.network;
    network.bytes = lab.pick<std::uint64_t>(1'000'000, 2'000'000);
    network.iterations = 4;
    network.jobs = jobs;
    network.placement = sim::Placement::separate;
    network.most_packets = packets_of_a_job;
    network.window_log2 = 7;
    network.train = packets_of_a_job;
    network.aggregators = most_jobs_here * packets_of_a_job;
    network.linear = scheme.linear;
    network.partition = scheme.partition;
    if (*scheme.flags != 0) trial.flags.push_back(fmt::format("--switch-flags={}", scheme.flags));
    return trial;
}

double mean_goodput_mbps(const Outcome& outcome, unsigned jobs) {
    double sum = 0;
    for (unsigned job = 0; job < jobs; ++job) sum += outcome.number("/bytes") * 8 / outcome.mean_seconds("atp", job);
    return sum / jobs / 1e6;
}

double mean_goodput_mbps(const sim::Report& report) {
    double sum = 0;
    for (const sim::JobReport& job : report.jobs) sum += job.goodput_bits_per_s();
    return sum / static_cast<double>(report.jobs.size()) / 1e6;
}

Drawing draw_real_fig14(const Lab& lab) {
    const std::vector<unsigned> counts = lab.pick<std::vector<unsigned>>({8}, {1, 4, 8});
    std::vector<Trial> trials;
    std::vector<sim::Scenario> points;
    for (const RealScheme& scheme : real_schemes) {
        for (const unsigned jobs : counts) {
            trials.push_back(jobs_on_hosts_of_their_own(lab, scheme, jobs));
            points.push_back(trials.back().network);
        }
    }
    const std::vector<Outcome> outcomes = measured(lab, trials);
    const std::vector<sim::Report> reports = lab.run(points);

    LineChart chart{.title = "Tensor after tensor, two workers a job at 20 Mbit/s",
                    .x = {.label = "jobs"},
                    .y = {.label = "goodput of a worker, Mbit/s", .from = 0}};
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        const std::size_t point = i % counts.size();
        if (point == 0) {
            const std::string name = real_schemes[i / counts.size()].name;
            chart.lines.push_back({.name = name});
            chart.lines.push_back({.name = name + std::string(simulated)});
        }
        Line& real = chart.lines[chart.lines.size() - 2];
        Line& calculated = chart.lines.back();
        for (Line* line : {&real, &calculated}) line->x.push_back(counts[point]);
        real.y.push_back(mean_goodput_mbps(outcomes[i], counts[point]));
        calculated.y.push_back(mean_goodput_mbps(reports[i]));
    }
    const auto of_static = [&](std::size_t scheme, std::size_t point) {
        return chart.lines[2 * scheme].y[point] / chart.lines[4].y[point];
    };
    double furthest = 1;  // the hashed jobs whose speed is furthest from static parts
    for (std::size_t i = 0; i < counts.size(); ++i) {
        if (std::abs(of_static(0, i) - 1) > std::abs(furthest - 1)) furthest = of_static(0, i);
    }
    const std::size_t eight = counts.size() - 1;
    Drawing drawing;
    drawing.checks = {equal(1, "hash-based relative to static parts, the count of jobs that differs most", furthest),
                      order("hash-based relative to linear-based, with eight jobs",
                            std::array{of_static(0, eight), of_static(1, eight)}),
                      notified("linear-based relative to static parts, eight jobs", of_static(1, eight))};
    drawing.charts = {chart};
    return drawing;
}

constexpr Input links_of_switchml_fig6[] = {
    {"loss of 0, 0.01 and 1 % on every link", Origin::paper, "section 5.5"},
    {"slots and timeout of SwitchML", Origin::measured, "the fastest of three pairs, before each trial"},
};

// Of what the first host sent, from its first to its last packet.
Line rate_of(const Outcome& outcome, std::string name) {
    constexpr double idle_bytes = 10'000;  // of forming the job
    const auto series = outcome.of_round("switchml", "series").get<std::vector<std::vector<double>>>();
    Line line{.name = std::move(name), .markers = false};
    double begin = 0;
    for (std::size_t i = 1; i < series.size(); ++i) {
        const double bytes = series[i][1] - series[i - 1][1];
        if (bytes < idle_bytes) continue;
        if (line.x.empty()) begin = series[i - 1][0];
        line.x.push_back(series[i][0] - begin);
        line.y.push_back(bytes * 8 / (series[i][0] - series[i - 1][0]) / 1e6);
    }
    return line;
}

Drawing draw_real_switchml_fig6(const Lab& lab) {
    const std::vector<double> losses{0, 1e-4, 1e-2};
    std::vector<Trial> trials;
    for (const double loss : losses) {
        trials.push_back({.network = linked("star:8", 50'000'000),
                          .systems = {"switchml"},
                          .flags = {"--sample", lab.pick("50ms", "100ms")}});
        sim::Scenario& network = trials.back().network;
        network.bytes = lab.pick<std::uint64_t>(2'000'000, 12'000'000);
        network.iterations = 1;
        network.faults.loss = loss;
    }
    const std::vector<Outcome> outcomes = measured(lab, trials);
    LineChart chart{.title = "Eight workers at 50 Mbit/s, loss on every link",
                    .x = {.label = "time, s", .from = 0},
                    .y = {.label = "sent by one worker, Mbit/s on the wire", .from = 0}};
    for (std::size_t i = 0; i < losses.size(); ++i) {
        chart.lines.push_back(rate_of(outcomes[i], fmt::format("{:g} % lost", losses[i] * 100)));
    }
    // A worker sends the same packets in each run, and a few again: its rate follows from the time.
    const auto rate = [&](std::size_t i) { return outcomes[0].seconds("switchml") / outcomes[i].seconds("switchml"); };
    Drawing drawing;
    drawing.checks = {equal(1, "sending rate at 0.01 %, relative to no loss", rate(1)),
                      number(1, same_ratio, "sending rate at 1 %, relative to no loss", rate(2))};
    drawing.charts = {chart};
    return drawing;
}

}  // namespace

const Figure real_fig9{
    .id = "fig9",
    .setup =
        "Three racks of two hosts below limited links; the server has a host below the third rack's switch, which is "
        "the "
        "root of the tree. \"Racks only\": each switch adds the gradients of its own rack, and its partial sums go to "
        "the "
        "server. Bytes are counted on the server's link.",
    .basis = Basis::sockets,
    .inputs = links_of_fig9,
    .seconds = 60,
    .draw = draw_real_fig9,
};

const Figure real_fig14{
    .id = "fig14",
    .setup =
        "Each job has two workers on hosts of their own, with 32 packets in flight, and the switch has 256 "
        "aggregators. "
        "A job with a static part has 32 of them to itself. Goodput includes the first tensor, while which slots "
        "search "
        "for aggregators without collisions.",
    .basis = Basis::sockets,
    .inputs = links_of_fig14,
    .seconds = 240,
    .draw = draw_real_fig14,
};

const Figure real_switchml_fig6{
    .id = "switchml-fig6",
    .setup =
        "One tensor of 12 MB. The chart shows what one of eight hosts sent in the last round; the rate is that of the "
        "whole tensor.",
    .basis = Basis::sockets,
    .inputs = links_of_switchml_fig6,
    .seconds = 120,
    .draw = draw_real_switchml_fig6,
};

}  // namespace atp::figure
