// SPDX-License-Identifier: Apache-2.0
// Packets whose sum could overflow, and packets whose sum overflows.
#include <fmt/format.h>

#include "figure/figures/figures.h"
#include "figure/figures/points.h"

namespace atp::figure {
namespace {

// Packets of one worker in an epoch of ResNet50: 25.6 million parameters in 62 lanes, 1.28 million images in batches of
// 64.
constexpr double packets_an_epoch = 8.3e9;

struct Row {
    unsigned workers;
    double of_paper;
};
constexpr Row rows[] = {{8, 37'002}, {16, 231'528}, {32, 1'156'126}, {64, 14'602'998}};

std::string topology_of(unsigned workers) {
    if (workers <= ATP_BITMAP_BITS) return fmt::format("star:{}", workers);
    return fmt::format("racks:{}x{}", workers / ATP_BITMAP_BITS, ATP_BITMAP_BITS);
}

// Share of all packets of workers.
double share_bypassed(const sim::Report& report) {
    const sim::JobReport& job = report.jobs.front();
    return static_cast<double>(job.worker.bypassed) / static_cast<double>(job.server.completed * job.workers);
}

double share_overflowed(const sim::Report& report) {
    const sim::JobReport& job = report.jobs.front();
    return static_cast<double>(job.server.overflowed) / static_cast<double>(job.server.completed);
}

constexpr Input inputs_of_table1[] = {
    {"packets of an epoch", Origin::paper, "25.6 M parameters, 62 lanes, 1.28 M images in batches of 64"},
    {"distribution of gradients", Origin::from_claim, "log-normal through the counts of 8 and 64 workers"},
};

Drawing draw_table1(const Lab& lab) {
    std::vector<Row> requested(std::begin(rows), std::end(rows));
    if (lab.quick()) requested = {rows[1], rows[2], rows[3]};
    std::vector<sim::Scenario> points;
    for (const Row& row : requested) {
        sim::Scenario point = testbed(topology_of(row.workers));
        point.gradients = sim::gradients_of_papers;
        // Equal numbers of packets for each row: with few workers overflows are rare.
        point.bytes = lab.pick<std::uint64_t>(256'000'000, 2'000'000'000) / row.workers;
        point.reactive = true;
        points.push_back(point);
        point.reactive = false;
        points.push_back(point);
    }
    const std::vector<sim::Report> reports = lab.run(points);

    Line proactive{.name = "proactive: bypass the switch"};
    Line reactive{.name = "reactive: overflow and are resent"};
    Line paper{.name = "proactive, in the paper"};
    for (std::size_t i = 0; i < requested.size(); ++i) {
        for (Line* line : {&proactive, &reactive, &paper}) line->x.push_back(requested[i].workers);
        reactive.y.push_back(share_overflowed(reports[2 * i]) * packets_an_epoch);
        proactive.y.push_back(share_bypassed(reports[2 * i + 1]) * packets_an_epoch);
        paper.y.push_back(requested[i].of_paper);
    }
    Drawing drawing;
    for (std::size_t i = 1; i < requested.size(); ++i) {
        drawing.checks.push_back(number(paper.y[i] / paper.y[i - 1], by_magnitude,
                                        fmt::format("growth from {} to {} workers", paper.x[i - 1], paper.x[i]),
                                        proactive.y[i] / proactive.y[i - 1]));
    }
    drawing.checks.push_back(equal(0, "reactive: packets with the fewest workers, relative to proactive",
                                   reactive.y.front() / proactive.y.front()));
    drawing.checks.push_back(notified("proactive: packets with the fewest workers (8: an input)", proactive.y.front()));
    drawing.checks.push_back(notified("proactive: packets with 64 workers (an input)", proactive.y.back()));
    drawing.charts = {LineChart{.title = "ResNet50, one epoch",
                                .x = {.label = "workers", .logarithmic = true, .ticks_at_numbers = true},
                                .y = {.label = "packets of a worker", .logarithmic = true},
                                .lines = {proactive, reactive, paper}}};
    return drawing;
}

}  // namespace

const Figure table1{
    .id = "table1",
    .title = "Packets that could overflow",
    .source = "ATP, appendix B.2 and section 5.3.1",
    .claim =
        "Average false positive packets per epoch of ResNet50 increase as workers increase: 37,002 with 8 workers, "
        "231,528 with 16, 1,156,126 with 32 and 14,602,998 with 64. No packet of ResNet50 needs overflow correction.",
    .setup =
        "The largest element of each fragment is drawn from a log-normal distribution. The state machines then send, "
        "bypass, overflow and resend. The measured shares are scaled to the 8.3 billion packets of an epoch. If the "
        "reactive mode resends no packet, the logarithmic axis cannot show a point.",
    .differences =
        "A log-normal distribution through both ends of the table grows more slowly from 32 to 64 workers than the "
        "paper's gradients, and faster before.",
    .inputs = inputs_of_table1,
    .draw = draw_table1,
};

}  // namespace atp::figure
