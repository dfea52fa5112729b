// SPDX-License-Identifier: Apache-2.0
// Lost packets, and the time until their loss is detected.
#include <algorithm>

#include "figure/figures/figures.h"
#include "figure/figures/points.h"
#include "figure/table.h"

namespace atp::figure {
namespace {

using std::chrono::microseconds;

constexpr double percent = 100;

// Both systems as in the paper: windows do not shrink, and timeouts are 1 ms.
sim::Scenario lossy(std::string_view topology, const char* system, double loss) {
    sim::Scenario point = testbed(topology);
    point.systems = {*sim::parse_system(system)};
    point.congestion_control = false;
    point.faults.loss = loss;
    return point;
}

// The values of each series, divided by the value without loss, which comes first.
std::vector<Line> normalised(const std::vector<const char*>& names, const std::vector<double>& losses,
                             const std::vector<double>& values) {
    std::vector<Line> lines;
    const std::size_t stride = losses.size() + 1;
    for (std::size_t i = 0; i < names.size(); ++i) {
        Line line{.name = names[i]};
        for (std::size_t k = 0; k < losses.size(); ++k) {
            line.x.push_back(losses[k] * percent);
            line.y.push_back(values[i * stride + k + 1] / values[i * stride]);
        }
        lines.push_back(std::move(line));
    }
    return lines;
}

Drawing draw_fig10(const Lab& lab) {
    const std::vector<double> losses =
        lab.pick<std::vector<double>>({1e-4, 1e-3, 1e-2}, {1e-5, 1e-4, 1e-3, 3e-3, 1e-2});
    const std::vector<const char*> systems{"atp", "switchml"};
    std::vector<double> with_none{0};
    with_none.insert(with_none.end(), losses.begin(), losses.end());
    std::vector<sim::Scenario> points;
    for (const bool training : {true, false}) {
        for (const char* system : systems) {
            for (const double loss : with_none) {
                sim::Scenario point = lossy("star:8", system, loss);
                point.faults.lossy_worker = 0;
                // As the product, ATP has four times as many slots as packets in flight.
                point.most_packets = 1U << point.window_log2;
                point.window_log2 += 2;
                if (training) {
                    point.models = {"VGG16"};
                    point.scale = lab.pick(80.0, 8.0);
                    point.iterations = 3;
                } else {
                    point.tensors = lab.pick(2U, 20U);
                    point.bytes = std::uint64_t{4'000'000} * point.tensors;
                }
                points.push_back(point);
            }
        }
    }
    const std::size_t half = points.size() / 2;
    const std::vector<sim::Report> reports = lab.run(points);

    std::vector<double> training;
    std::vector<double> micro;
    for (std::size_t i = 0; i < half; ++i) {
        training.push_back(samples_per_s(reports[i]));
        micro.push_back(goodput_gbps(reports[half + i]));
    }
    const Axis x{.label = "packets lost at one worker, %", .logarithmic = true};
    const Axis y{.label = "throughput relative to no loss", .from = 0};
    const LineChart of_model{
        .title = "VGG16", .x = x, .y = y, .lines = normalised({"ATP", "SwitchML"}, losses, training)};
    const LineChart of_micro{
        .title = "Microbenchmark", .x = x, .y = y, .lines = normalised({"ATP", "SwitchML"}, losses, micro)};
    const auto lead = [](const LineChart& chart, std::size_t i) { return chart.lines[0].y[i] / chart.lines[1].y[i]; };
    const std::size_t rare = lab.quick() ? 0 : 1;
    Drawing drawing;
    drawing.checks = {
        at_least(0.95, "ATP, VGG16 at 0.01 %: throughput relative to no loss", of_model.lines[0].y[rare]),
        at_least(0.9, "ATP, microbenchmark at 0.01 %: throughput relative to no loss", of_micro.lines[0].y[rare])};
    for (std::size_t i = rare; i < losses.size(); ++i) {
        const std::string at = " at " + number_text(losses[i] * percent) +
                               " %: share of throughput that ATP keeps, relative to SwitchML's share";
        drawing.checks.push_back(at_least(0.99, "VGG16" + at, lead(of_model, i)));
        drawing.checks.push_back(at_least(1, "microbenchmark" + at, lead(of_micro, i)));
    }
    drawing.checks.push_back(
        at_least(0.9, "ATP, microbenchmark at 1 %: throughput relative to no loss", of_micro.lines[0].y.back()));
    drawing.charts = {of_model, of_micro};
    return drawing;
}

Drawing draw_switchml_fig5(const Lab& lab) {
    const std::vector<double> losses{1e-4, 1e-3, 1e-2};
    std::vector<sim::Scenario> points;
    for (const bool tcp : {false, true}) {
        for (const double loss : {0.0, 1e-4, 1e-3, 1e-2}) {
            sim::Scenario point = lossy("star:8", tcp ? "ring:tcp" : "switchml", loss);
            if (tcp) point.min_timeout = std::chrono::milliseconds(200);  // minimum of Linux
            point.rate_bits_per_s = 10'000'000'000;
            point.host_cost = {};
            point.tcp_cost = {};
            point.bytes = lab.pick<std::uint64_t>(8'000'000, 50'000'000);
            point.iterations = 8;
            points.push_back(point);
        }
    }
    std::vector<double> speeds;
    for (const sim::Report& report : lab.run(points)) speeds.push_back(1 / to_milliseconds(report.jobs.front().time()));

    LineChart chart{.title = "Eight workers at 10 Gbit/s, loss on every link",
                    .x = {.label = "packets lost, %", .logarithmic = true},
                    .y = {.label = "time relative to no loss", .logarithmic = true, .from = 1},
                    .lines = normalised({"SwitchML", "ring over TCP (Gloo)"}, losses, speeds)};
    for (Line& line : chart.lines) {
        for (double& y : line.y) y = 1 / y;
    }
    Drawing drawing;
    drawing.checks = {at_most(1.2, "SwitchML at 0.01 %: time relative to no loss", chart.lines[0].y[0]),
                      at_least(1.2, "ring at 0.1 %: slowdown relative to SwitchML's slowdown",
                               chart.lines[1].y[1] / chart.lines[0].y[1]),
                      at_least(1.2, "ring at 1 %: slowdown relative to SwitchML's slowdown",
                               chart.lines[1].y[2] / chart.lines[0].y[2])};
    drawing.charts = {chart};
    return drawing;
}

Drawing draw_switchml_fig6(const Lab& lab) {
    const microseconds interval = lab.pick(microseconds(500), microseconds(2000));
    LineChart chart{.title = "Eight workers at 10 Gbit/s, loss on every link",
                    .x = {.label = "time, ms", .from = 0},
                    .y = {.label = "sent by one worker, Gbit/s on the wire", .from = 0}};
    const std::vector<double> losses{0, 1e-4, 1e-2};
    std::vector<sim::Scenario> points;
    for (const double loss : losses) {
        sim::Scenario point = lossy("star:8", "switchml", loss);
        point.rate_bits_per_s = 10'000'000'000;
        point.host_cost = {};
        point.bytes = lab.pick<std::uint64_t>(8'000'000, 100'000'000);
        point.sample = interval;
        points.push_back(point);
    }
    // Parameters that determine the rate at high loss.
    const sim::Scenario worst = points.back();
    points.push_back(worst);
    points.back().switchml.pool = 512;
    points.push_back(worst);
    points.back().switchml.timeout = microseconds(100);
    const std::vector<sim::Report> reports = lab.run(points);
    std::vector<double> ends;
    ends.reserve(reports.size());
    for (const sim::Report& report : reports) ends.push_back(to_milliseconds(report.jobs.front().time()));
    for (std::size_t i = 0; i < losses.size(); ++i) {
        const auto& bytes = reports[i].series->link_bytes[link_between(reports[i], "h0", "s0")];
        chart.lines.push_back(course_of(number_text(losses[i] * percent) + " % lost", bytes, interval));
    }
    const auto rate = [&](std::size_t i) { return average_between(chart.lines[i], 0, ends[i]); };
    Drawing drawing;
    drawing.checks = {at_least(0.9, "sending rate at 0.01 %, relative to no loss", rate(1) / rate(0)),
                      at_least(0.4, "sending rate at 1 %, relative to no loss", rate(2) / rate(0)),
                      notified("time at 1 %, relative to no loss", ends[2] / ends[0]),
                      notified("the same with 512 slots", ends[3] / ends[0]),
                      notified("the same with a timer of 0.1 ms", ends[4] / ends[0])};
    drawing.charts = {chart};
    return drawing;
}

}  // namespace

const Figure fig10{
    .id = "fig10",
    .title = "One worker loses packets",
    .source = "ATP, section 5.2.3",
    .claim =
        "Congestion control is off, and one worker drops 0.001 to 1 % of its packets. ATP degrades gracefully and "
        "less than SwitchML: the difference is up to about a third. After a loss, SwitchML waits for 1 ms, while ATP "
        "detects the loss from newer ACKs.",
    .setup = "Packets are lost in both directions of the link of one of eight workers.",
    .differences =
        "In the paper, each worker that sees three newer ACKs sends its gradient again. Here the server asks only the "
        "workers whose gradients it misses, and a worker has four times as many slots as packets in flight, so that "
        "one lost fragment does not stop the others. The paper does not say what its workers do if a resend is lost.",
    .draw = draw_fig10,
};

const Figure switchml_fig5{
    .id = "switchml-fig5",
    .title = "SwitchML's time for a tensor under loss",
    .source = "SwitchML, section 5.5",
    .claim =
        "A loss of 0.01 % on every link has little effect. From 0.1 %, loss delays SwitchML much less than Gloo over "
        "TCP.",
    .setup =
        "Eight workers at 10 Gbit/s, the paper's 128 slots, and a resend after 1 ms. A ring over TCP represents "
        "Gloo; its minimum timeout is that of Linux, 200 ms.",
    .draw = draw_switchml_fig5,
};

const Figure switchml_fig6{
    .id = "switchml-fig6",
    .title = "Sending rate of a SwitchML worker under loss",
    .source = "SwitchML, section 5.5",
    .claim =
        "Under loss, workers keep a high sending rate and recover quickly. At 1 %, the end takes long, because "
        "losses hit slots unevenly and no slot takes over the work of another.",
    .setup = "One tensor; the chart shows the sending rate of one of eight workers.",
    .differences =
        "At 1 %, the rate falls further than in the paper's timeline. A lost packet blocks its slot for 1 ms. In "
        "each round, the packets of a slot cross sixteen links (eight workers, two directions), so a loss of 1 % "
        "hits one round in seven. A round takes 21 us if 128 slots fill 10 Gbit/s. A slot therefore waits seven "
        "times as long as it works. The paper also states 128 slots and 1 ms. Its timeline at 1 %, which slows down "
        "past 150 ms, rather matches more slots or a shorter timer (last rows).",
    .draw = draw_switchml_fig6,
};

}  // namespace atp::figure
