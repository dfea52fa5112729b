// SPDX-License-Identifier: Apache-2.0
// Three training jobs share the memory of one switch.
#include <algorithm>
#include <cmath>

#include "figure/figures/figures.h"
#include "figure/figures/points.h"

namespace atp::figure {
namespace {

using std::chrono::microseconds;

constexpr unsigned jobs = 3;
constexpr std::uint8_t window_log2 = 7;
// With fewer aggregators, a static part slows its job.
constexpr std::uint32_t peak_aggregators = jobs << window_log2;

sim::Scenario three_jobs(const Lab& lab) {
    sim::Scenario point = testbed("star:3");
    point.placement = sim::Placement::separate;
    point.jobs = jobs;
    point.models = {"VGG16"};
    point.scale = lab.pick(200.0, 20.0);
    point.iterations = lab.pick(6U, 8U);
    point.window_log2 = window_log2;
    point.batch = 32;
    point.aggregators = peak_aggregators;
    return point;
}

Duration a_third_of_iteration(const sim::Scenario& point) { return point.workload(0).compute() / jobs; }

Drawing draw_fig13a(const Lab& lab) {
    const std::vector<double> shares =
        lab.pick<std::vector<double>>({1, 0.5, 1.0 / 3, 0.25}, {1, 0.83, 0.67, 0.5, 0.42, 1.0 / 3, 0.25});
    std::vector<sim::Scenario> points;
    for (const bool dynamic : {true, false}) {
        for (const double share : shares) {
            sim::Scenario point = three_jobs(lab);
            point.stagger = a_third_of_iteration(point);
            point.aggregators = static_cast<std::uint32_t>(std::lround(share * peak_aggregators));
            point.partition = !dynamic;
            point.linear = !dynamic;
            points.push_back(point);
        }
    }
    const std::vector<sim::Report> reports = lab.run(points);

    LineChart chart{.title = "Three VGG16 jobs",
                    .x = {.label = "aggregators, % of those that peak throughput needs"},
                    .y = {.label = "samples per second of each worker", .from = 0},
                    .lines = {{.name = "dynamic (ATP)"}, {.name = "static parts"}}};
    for (std::size_t i = 0; i < reports.size(); ++i) {
        Line& line = chart.lines[i / shares.size()];
        line.x.push_back(shares[i % shares.size()] * 100);
        line.y.push_back(samples_per_s(reports[i]));
    }
    const auto at = [&](std::size_t line, double share) {
        const auto found = std::ranges::find(shares, share);
        return chart.lines[line].y[static_cast<std::size_t>(found - shares.begin())];
    };
    // The window of a job is a power of two. The job therefore uses a static part of a quarter or half of a window in
    // full. Of a part between them, the job uses only a quarter of a window. The value that a fully used part would
    // have is interpolated linearly.
    const double whole_third = at(1, 0.25) + (at(1, 0.5) - at(1, 0.25)) * (1.0 / 3 - 0.25) / (0.5 - 0.25);
    Drawing drawing;
    drawing.checks = {between(0.95, 1.15, "dynamic relative to static, with 100 %", at(0, 1) / at(1, 1)),
                      at_least(0.9, "dynamic with 50 %, relative to dynamic with 100 %", at(0, 0.5) / at(0, 1)),
                      at_least(1.2, "dynamic relative to static, with 33 %", at(0, 1.0 / 3) / at(1, 1.0 / 3)),
                      at_least(1.2, "dynamic relative to static, with 25 %", at(0, 0.25) / at(1, 0.25)),
                      at_least(1.2, "dynamic relative to static windows that use whole parts (interpolated), with 33 %",
                               at(0, 1.0 / 3) / whole_third)};
    drawing.charts = {chart};
    return drawing;
}

// Packets added per interval, one line per job.
std::vector<Line> additions_of(const std::vector<std::vector<std::uint64_t>>& added, Duration interval) {
    std::vector<Line> lines;
    for (std::size_t job = 0; job < added.size(); ++job) {
        Line line{.name = "job " + std::to_string(job + 1), .markers = false};
        for (std::size_t i = 0; i < added[job].size(); ++i) {
            line.x.push_back(to_milliseconds(interval) * static_cast<double>(i + 1));
            line.y.push_back(static_cast<double>(added[job][i]));
        }
        lines.push_back(std::move(line));
    }
    return lines;
}

double sum_between(const std::vector<Line>& lines, double from, double to) {
    double sum = 0;
    for (const Line& line : lines) {
        for (std::size_t i = 0; i < line.x.size(); ++i) {
            if (line.x[i] > from && line.x[i] <= to) sum += line.y[i];
        }
    }
    return sum;
}

Drawing draw_fig13b(const Lab& lab) {
    sim::Scenario point = three_jobs(lab);
    point.sample = lab.pick(microseconds(100), microseconds(1000));
    const sim::Report report = lab.run(point);

    const LineChart chart{.title = "100 % of the aggregators that peak throughput needs",
                          .x = {.label = "time, ms", .from = 0},
                          .y = {.label = "packets added by the server per interval", .from = 0},
                          .lines = additions_of(report.series->job_added_at_server, report.series->interval)};
    const double end = chart.lines.front().x.back();
    const double early = sum_between(chart.lines, 0, end / 4);
    const double late = sum_between(chart.lines, end * 3 / 4, end);
    Drawing drawing;
    drawing.checks = {
        at_least(1, "packets added by servers in the first quarter of the time", early),
        at_most(0.1, "packets added by servers in the last quarter, relative to the first quarter", late / early)};
    drawing.charts = {chart};
    return drawing;
}

// Mean additions per interval of an active job: first while all other jobs are active, then while one is idle.
struct Crowds {
    double all_on = 0;
    double some_off = 0;
};

Crowds crowds_of(const std::vector<Line>& lines) {
    Crowds sums;
    Crowds counts;
    for (std::size_t i = 0; i < lines.front().y.size(); ++i) {
        double added = 0;
        unsigned on = 0;
        for (const Line& line : lines) {
            added += line.y[i];
            on += line.y[i] > 0 ? 1U : 0U;
        }
        if (on == 0) continue;
        (on == lines.size() ? sums.all_on : sums.some_off) += added;
        (on == lines.size() ? counts.all_on : counts.some_off) += on;
    }
    return {.all_on = sums.all_on / counts.all_on, .some_off = sums.some_off / counts.some_off};
}

Drawing draw_fig13c(const Lab& lab) {
    sim::Scenario point = three_jobs(lab);
    point.aggregators /= jobs;
    point.stagger = a_third_of_iteration(point);
    point.sample = lab.pick(microseconds(50), microseconds(200));
    const sim::Report report = lab.run(point);

    const LineChart chart{.title = "33 % of the aggregators that peak throughput needs",
                          .x = {.label = "time, ms", .from = 0},
                          .y = {.label = "packets added by the switch per interval", .from = 0},
                          .lines = additions_of(report.series->job_added_in_network, report.series->interval)};
    const Crowds crowds = crowds_of(chart.lines);
    Drawing drawing;
    drawing.checks = {at_least(
        1.1,
        "packets of an active job that the switch adds while another job is idle, relative to while all are active",
        crowds.some_off / crowds.all_on)};
    drawing.charts = {chart};
    return drawing;
}

}  // namespace

const Figure fig13a{
    .id = "fig13a",
    .title = "Three jobs with too few aggregators, shared and divided",
    .source = "ATP, section 5.4.1",
    .claim =
        "Three VGG16 jobs share aggregators, or each has a static third. With 100 % of the aggregators that peak "
        "throughput needs, shared and static aggregators are equally fast. With 50 %, sharing loses 5 to 10 %. With "
        "33 %, sharing is up to 38 % faster than static thirds.",
    .setup =
        "Each job has hosts of its own. A job with a static part waits until an aggregator is free, as with "
        "SwitchML. The window of such a job is the largest power of two that fits into its part. With 100, 50 and 25 "
        "%, the window uses the whole part; with 33 %, the window uses 32 of 42 aggregators.",
    .differences =
        "At 33 %, much of the gain comes from aggregators that static windows leave unused. If static windows used "
        "their whole parts (throughput interpolated linearly between 25 and 50 %), sharing would be a sixth faster "
        "at 33 %, not two fifths. At 25 %, static windows leave no aggregator unused, and sharing is a quarter "
        "faster.",
    .draw = draw_fig13a,
};

const Figure fig13b{
    .id = "fig13b",
    .title = "Hashing again removes collisions",
    .source = "ATP, section 5.4.2",
    .claim =
        "With 100 % of the aggregators, fragments collide at first, and the server adds them. After the slots are "
        "hashed again, the collisions vanish.",
    .setup =
        "The jobs of fig13a start at the same time. The chart shows the packets that the servers add in each "
        "interval.",
    .draw = draw_fig13b,
};

const Figure fig13c{
    .id = "fig13c",
    .title = "Active jobs use the aggregators of an idle job",
    .source = "ATP, section 5.4.2",
    .claim =
        "With 33 % of the aggregators, the switch adds more packets of two jobs while the third job computes and "
        "sends nothing.",
    .setup =
        "The jobs of fig13a start a third of an iteration apart. The chart shows the packets that the switch adds in "
        "each interval.",
    .draw = draw_fig13c,
};

}  // namespace atp::figure
