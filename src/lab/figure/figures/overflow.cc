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

Drawing draw_table1(const Lab& lab) {
    std::vector<Row> requested(std::begin(rows), std::end(rows));
    if (lab.quick()) requested = {rows[1], rows[3]};
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
    drawing.checks = {
        at_least(4,
                 fmt::format("proactive: packets with 64 workers, relative to {} workers", requested.front().workers),
                 proactive.y.back() / proactive.y.front()),
        between(0.2, 5, "proactive: packets with 64 workers, relative to the paper",
                proactive.y.back() / paper.y.back()),
        at_most(0.05, "reactive: packets with 64 workers, relative to proactive",
                reactive.y.back() / proactive.y.back())};
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
    .source = "ATP, appendix B.2",
    .claim =
        "If all packets whose sum could overflow bypassed the switch (proactive), their number would grow fast with "
        "the number of workers: from 37,002 per epoch with 8 workers to 14.6 million with 64. Hardly any sum "
        "overflows (reactive).",
    .setup =
        "The largest element of each fragment is drawn from a log-normal distribution that matches both ends of the "
        "paper's table (research/simulate.md). The shipped state machines then send, bypass, overflow and resend. The "
        "measured shares are scaled to the 8.3 billion packets of an epoch. If the reactive mode resends no packet, "
        "the logarithmic axis cannot show a point.",
    .draw = draw_table1,
};

}  // namespace atp::figure
