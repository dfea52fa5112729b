// SPDX-License-Identifier: Apache-2.0
// Lost packets, and the time until their loss is detected.
#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "figure/figures/claims.h"
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

constexpr const char* rivals[] = {"atp", "switchml"};

// One worker loses packets. Empty: the microbenchmark instead of a model.
std::vector<sim::Scenario> one_lossy_worker(const Lab& lab, const char* model, const std::vector<double>& losses) {
    std::vector<sim::Scenario> points;
    for (const char* system : rivals) {
        for (std::size_t i = 0; i <= losses.size(); ++i) {
            sim::Scenario point = lossy("star:8", system, i == 0 ? 0 : losses[i - 1]);
            point.faults.lossy_worker = 0;
            point.delay = Duration(lab.free("delay of a link", point.delay.count()));
            // As the product, ATP has four times as many slots as packets in flight.
            point.most_packets = 1U << point.window_log2;
            point.window_log2 += 2;
            if (*model != 0) {
                point.models = {model};
                point.scale = lab.pick(80.0, 8.0);
                point.iterations = 3;
            } else {
                point.tensors = lab.pick(2U, 20U);
                point.bytes = std::uint64_t{4'000'000} * point.tensors;
            }
            points.push_back(point);
        }
    }
    return points;
}

// Throughput relative to no loss, ATP first.
LineChart kept_by_loss(const char* title, const std::vector<double>& losses, std::span<const sim::Report> reports) {
    std::vector<double> speeds;
    for (const sim::Report& report : reports) {
        speeds.push_back(report.jobs.front().model.empty() ? goodput_gbps(report) : samples_per_s(report));
    }
    return {.title = title,
            .x = {.label = "packets lost at one worker, %", .logarithmic = true},
            .y = {.label = "throughput relative to no loss", .from = 0},
            .lines = normalised({"ATP", "SwitchML"}, losses, speeds)};
}

std::vector<double> losses_of(const Lab& lab) {
    return lab.pick<std::vector<double>>({1e-4, 1e-3, 1e-2}, {1e-5, 1e-4, 1e-3, 3e-3, 1e-2});
}

constexpr Input inputs_of_fig10[] = {
    {"loss, timeouts of 1 ms, no congestion control", Origin::paper, "section 5.2.3"},
    {"512 slots of SwitchML", Origin::paper, "SwitchML, section 3.6"},
    {"four times as many slots as packets in flight", Origin::measured, "as the product"},
    {"delay of a link", Origin::free, "1 us; the paper states no round trip"},
};

Drawing draw_fig10(const Lab& lab) {
    const std::vector<double> losses = losses_of(lab);
    std::vector<sim::Scenario> points = one_lossy_worker(lab, "VGG16", losses);
    const std::size_t half = points.size();
    std::ranges::move(one_lossy_worker(lab, "", losses), std::back_inserter(points));
    const std::vector<sim::Report> reports = lab.run(points);
    const LineChart of_model = kept_by_loss("VGG16", losses, std::span(reports).first(half));
    const LineChart of_micro = kept_by_loss("Microbenchmark", losses, std::span(reports).subspan(half));
    const std::vector<double> model = leads_of(of_model);
    const std::vector<double> micro = leads_of(of_micro);
    const double at_most_loss = std::max(model.back(), micro.back());
    const double elsewhere =
        std::max(*std::max_element(model.begin(), model.end() - 1), *std::max_element(micro.begin(), micro.end() - 1));
    const std::size_t rare = lab.quick() ? 0 : 1;
    Drawing drawing;
    drawing.checks = {
        number(paper_lead, same_ratio, "largest gain: share that ATP keeps, relative to SwitchML's share",
               std::max(at_most_loss, elsewhere)),
        order("the gain is largest at 1 %", std::array{at_most_loss, elsewhere}),
        monotone(Trend::rises, "gain over the loss, microbenchmark, smallest step", micro),
        degrades_less("VGG16", losses, model),
        degrades_less("microbenchmark", losses, micro),
        equal(1, "ATP, VGG16 at 0.01 %: throughput relative to no loss", of_model.lines[0].y[rare]),
        notified("ATP, microbenchmark at 1 %: throughput relative to no loss", of_micro.lines[0].y.back()),
        notified("SwitchML, microbenchmark at 1 %: throughput relative to no loss", of_micro.lines[1].y.back())};
    drawing.charts = {of_model, of_micro};
    return drawing;
}

Drawing draw_draft_fig7(const Lab& lab) {
    const std::vector<double> losses = losses_of(lab);
    const LineChart chart = kept_by_loss("ResNet50", losses, lab.run(one_lossy_worker(lab, "ResNet50", losses)));
    Drawing drawing;
    drawing.checks = {degrades_less("ResNet50", losses, leads_of(chart)),
                      notified("ATP at 1 %: throughput relative to no loss", chart.lines[0].y.back()),
                      notified("SwitchML at 1 %: throughput relative to no loss", chart.lines[1].y.back())};
    drawing.charts = {chart};
    return drawing;
}

constexpr Input inputs_of_switchml_loss[] = {
    {"loss on every link, timer of 1 ms", Origin::paper, "section 5.5"},
    {"128 slots", Origin::paper, "section 3.6"},
    {"delay of a link", Origin::free, "1 us; the paper states no round trip"},
};

Drawing draw_switchml_fig5(const Lab& lab) {
    const std::vector<double> losses{1e-4, 1e-3, 1e-2};
    std::vector<sim::Scenario> points;
    for (const bool tcp : {false, true}) {
        for (const double loss : {0.0, 1e-4, 1e-3, 1e-2}) {
            sim::Scenario point = lossy("star:8", tcp ? "ring:tcp" : "switchml", loss);
            if (tcp) point.min_timeout = std::chrono::milliseconds(200);  // minimum of Linux
            point.rate_bits_per_s = 10'000'000'000;
            point.delay = Duration(lab.free("delay of a link", point.delay.count()));
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
    drawing.checks = checks_of_losses(chart.lines[0].y, "the ring", chart.lines[1].y);
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
        point.delay = Duration(lab.free("delay of a link", point.delay.count()));
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
    drawing.checks = {equal(1, "sending rate at 0.01 %, relative to no loss", rate(1) / rate(0)),
                      number(1, same_ratio, "sending rate at 1 %, relative to no loss", rate(2) / rate(0)),
                      notified("time at 1 %, relative to no loss", ends[2] / ends[0]),
                      notified("the same with 512 slots", ends[3] / ends[0]),
                      notified("the same with a timer of 0.1 ms", ends[4] / ends[0])};
    drawing.charts = {chart};
    return drawing;
}

}  // namespace

std::vector<double> leads_of(const LineChart& chart) {
    std::vector<double> leads;
    for (std::size_t i = 0; i < chart.lines[0].y.size(); ++i)
        leads.push_back(chart.lines[0].y[i] / chart.lines[1].y[i]);
    return leads;
}

Check degrades_less(const std::string& what, const std::vector<double>& losses, const std::vector<double>& leads) {
    double least = leads.back();
    for (std::size_t i = 0; i < losses.size(); ++i) {
        if (losses[i] >= 1e-3) least = std::min(least, leads[i]);
    }
    return order(what + " from 0.1 %: the share that ATP keeps relative to SwitchML's share, minimum",
                 std::array{least, 1.0});
}

const Figure fig10{
    .id = "fig10",
    .title = "One worker loses packets",
    .source = "ATP, section 5.2.3",
    .claim =
        "One worker drops packets with a rate between 0.001% and 1%, and congestion control is off. ATP degrades "
        "gracefully when the loss rate increases, and to a lesser degree than SwitchML: its loss recovery outperforms "
        "SwitchML by 34% (section 1). Training loses no throughput below 0.1% (section 3.8).",
    .setup =
        "Packets are lost in both directions of the link of one of eight workers. The paper does not say where the 34 "
        "% "
        "were measured, so the largest gain of both charts is compared.",
    .differences =
        "In the paper, each worker that sees three newer ACKs sends its gradient again. Here the server asks only the "
        "workers whose gradients it misses, and a worker has four times as many slots as packets in flight, so that "
        "one lost fragment does not stop the others. The paper does not say what its workers do if a resend is lost.",
    .inputs = inputs_of_fig10,
    .draw = draw_fig10,
};

const Figure draft_fig7{
    .id = "draft-fig7",
    .title = "One worker loses packets, ResNet50",
    .source = "ATP's earlier submission, section 7.2.3",
    .claim = "ATP degrades gracefully to a lesser degree than SwitchML when the loss rate increases.",
    .setup = "As fig10, which draws VGG16. The plotted values are not in the text.",
    .inputs = inputs_of_fig10,
    .draw = draw_draft_fig7,
};

const Figure switchml_fig5{
    .id = "switchml-fig5",
    .title = "SwitchML's time for a tensor under loss",
    .source = "SwitchML, section 5.5",
    .claim =
        "SwitchML completes tensor aggregation significantly faster than Gloo when the loss is 0.1% or higher. A loss "
        "probability of 0.01% only minimally affects the time in either case.",
    .setup =
        "Eight workers at 10 Gbit/s, the paper's 128 slots, and a resend after 1 ms. A ring over TCP represents "
        "Gloo; its minimum timeout is that of Linux, 200 ms.",
    .inputs = inputs_of_switchml_loss,
    .draw = draw_switchml_fig5,
};

const Figure switchml_fig6{
    .id = "switchml-fig6",
    .title = "Sending rate of a SwitchML worker under loss",
    .source = "SwitchML, section 5.5",
    .claim =
        "SwitchML generally maintains a high sending rate, relatively close to the ideal rate, and quickly recovers. "
        "The slowdown past the 150 ms mark with 1% loss occurs because some slots are unevenly affected.",
    .setup = "One tensor; the chart shows the sending rate of one of eight workers.",
    .differences =
        "At 1 %, the rate falls further than in the paper's timeline. A lost packet blocks its slot for 1 ms. In "
        "each round, the packets of a slot cross sixteen links (eight workers, two directions), so a loss of 1 % "
        "hits one round in seven. A round takes 21 us if 128 slots fill 10 Gbit/s. A slot therefore waits seven "
        "times as long as it works. The paper also states 128 slots and 1 ms. Its timeline at 1 %, which slows down "
        "past 150 ms, rather matches more slots or a shorter timer (last rows).",
    .inputs = inputs_of_switchml_loss,
    .draw = draw_switchml_fig6,
};

}  // namespace atp::figure
