// SPDX-License-Identifier: Apache-2.0
// Three training jobs share the memory of one switch.
#include <algorithm>
#include <array>
#include <cmath>

#include "figure/figures/claims.h"
#include "figure/figures/figures.h"
#include "figure/figures/points.h"

namespace atp::figure {
namespace {

using std::chrono::microseconds;

constexpr unsigned jobs = 3;

// The papers' testbed with VGG16 jobs that have hosts of their own, each with a window of 2^log2 packets, and as many
// aggregators as windows.
sim::Scenario vgg_jobs(const Lab& lab, unsigned count, std::uint8_t window_log2) {
    sim::Scenario point = testbed("star:3");
    point.placement = sim::Placement::separate;
    point.jobs = count;
    point.models = {"VGG16"};
    point.scale = lab.pick(200.0, 20.0);
    point.iterations = lab.pick(6U, 8U);
    point.window_log2 = window_log2;
    point.batch = lab.free("batch", 32U);
    point.aggregators = count << window_log2;
    return point;
}

// As in the paper: the least part with which a job reaches its peak throughput, here within 5 %. Jobs with parts of
// their own do not notice each other, so one is enough.
std::uint8_t peak_window_log2(const Lab& lab) {
    std::vector<sim::Scenario> points;
    for (std::uint8_t log2 = 4; log2 <= 8; ++log2) {
        points.push_back(vgg_jobs(lab, 1, log2));
        points.back().scale = 200;
        points.back().iterations = 3;
        points.back().partition = points.back().linear = true;
    }
    std::vector<double> speeds;
    for (const sim::Report& report : lab.run(points)) speeds.push_back(samples_per_s(report));
    const double enough = std::ranges::max(speeds) / (1 + equality);
    const auto least = std::ranges::find_if(speeds, [&](double speed) { return speed >= enough; });
    return points[static_cast<std::size_t>(least - speeds.begin())].window_log2;
}

sim::Scenario three_jobs(const Lab& lab) { return vgg_jobs(lab, jobs, peak_window_log2(lab)); }

constexpr Input inputs_of_sharing[] = {
    {"three VGG16 jobs, windows as large as a part", Origin::paper, "section 5.4.1"},
    {"aggregators at the peak", Origin::measured, "least static parts within 5 % of the peak, in the same run"},
    {"batch", Origin::free, "32 samples"},
};

Duration a_third_of_iteration(const sim::Scenario& point) { return point.workload(0).compute() / jobs; }

Drawing draw_fig13a(const Lab& lab) {
    const std::vector<double> shares =
        lab.pick<std::vector<double>>({1, 0.5, 1.0 / 3, 0.25}, {1, 0.83, 0.67, 0.5, 0.42, 1.0 / 3, 0.25});
    const sim::Scenario peak = three_jobs(lab);
    std::vector<sim::Scenario> points;
    for (const bool dynamic : {true, false}) {
        for (const double share : shares) {
            sim::Scenario point = peak;
            point.stagger = a_third_of_iteration(point);
            point.aggregators = static_cast<std::uint32_t>(std::lround(share * peak.aggregators));
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
    Drawing drawing;
    drawing.checks = checks_of_parts(chart, shares);
    drawing.checks.push_back(notified("aggregators at the peak", peak.aggregators));
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
    Drawing drawing;
    drawing.checks = checks_of_settling(chart.lines, 1);
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
    Drawing drawing;
    drawing.checks = {check_of_off_phases(chart.lines)};
    drawing.charts = {chart};
    return drawing;
}

}  // namespace

std::vector<Check> checks_of_parts(const LineChart& chart, const std::vector<double>& shares) {
    const auto at = [&](std::size_t line, double share) {
        const auto found = std::ranges::find(shares, share);
        return chart.lines[line].y[static_cast<std::size_t>(found - shares.begin())];
    };
    // The window of a job is a power of two. The job therefore uses a static part of a quarter or half of a window in
    // full. Of a part between them, the job uses only a quarter of a window. The value that a fully used part would
    // have is interpolated linearly.
    const double whole_third = at(1, 0.25) + (at(1, 0.5) - at(1, 0.25)) * (1.0 / 3 - 0.25) / (0.5 - 0.25);
    const double gain_of_third = at(0, 1.0 / 3) / whole_third;
    const std::array gains{gain_of_third, at(0, 0.5) / at(1, 0.5), at(0, 1) / at(1, 1)};
    return {
        equal(1, "dynamic relative to static, with 100 %", at(0, 1) / at(1, 1)),
        equal(0.925, "dynamic with 50 %, relative to dynamic with 100 %", at(0, 0.5) / at(0, 1)),
        number(1.38, same_ratio, "largest gain over static parts that are used as a whole", std::ranges::max(gains)),
        order("the gain falls from 33 % over 50 % to 100 %", gains),
        monotone(Trend::falls, "dynamic throughput over the aggregators, from most to fewest", chart.lines[0].y),
        notified("dynamic relative to static windows of powers of two, with 33 %", at(0, 1.0 / 3) / at(1, 1.0 / 3)),
        notified("dynamic relative to static, with 25 %", at(0, 0.25) / at(1, 0.25))};
}

std::vector<Check> checks_of_settling(const std::vector<Line>& jobs_added, double millisecond) {
    const double end = jobs_added.front().x.back();
    double settled = 0;
    for (const Line& line : jobs_added) {
        for (std::size_t i = 0; i < line.x.size(); ++i) {
            if (line.y[i] > 0) settled = std::max(settled, line.x[i]);
        }
    }
    const double early = sum_between(jobs_added, 0, end / 4);
    return {equal(0, "packets added by servers in the last quarter of the time, relative to the first quarter",
                  early == 0 ? 0 : sum_between(jobs_added, end * 3 / 4, end) / early),
            number(500, same_ratio, "ms until the servers add no packet", settled / millisecond),
            notified("packets added by servers in the first quarter of the time", early)};
}

Check check_of_off_phases(const std::vector<Line>& jobs_added) {
    const Crowds crowds = crowds_of(jobs_added);
    return order(
        "packets of an active job that the switch adds while another job is idle, relative to "
        "while all are active",
        std::array{crowds.some_off, crowds.all_on});
}

const Figure fig13a{
    .id = "fig13a",
    .title = "Three jobs with too few aggregators, shared and divided",
    .source = "ATP, section 5.4.1",
    .claim =
        "With 100% of the aggregators that peak throughput needs, the dynamic approach performs similarly to static "
        "thirds. The performance decreases by 5-10% when only half of the aggregators are available, and outperforms "
        "static sharing by up to 38% when there is heavy contention (33%).",
    .setup =
        "Each job has hosts of its own; jobs start a third of an iteration apart. A job with a static part waits until "
        "an aggregator is free, as with SwitchML. Its window is the largest power of two that fits into its part. With "
        "33 %, such a window leaves a quarter of the part unused, so the throughput with the whole part is "
        "interpolated linearly between 25 and 50 %.",
    .inputs = inputs_of_sharing,
    .draw = draw_fig13a,
};

const Figure fig13b{
    .id = "fig13b",
    .title = "Hashing again removes collisions",
    .source = "ATP, section 5.4.1",
    .claim =
        "With 100% of the aggregators, there are initially hash collisions, which lead to aggregation at the server. "
        "After 500ms, the dynamic approach converges to complete in-network aggregation.",
    .setup =
        "The jobs of fig13a start at the same time. The chart shows the packets that the servers add in each "
        "interval. Times and tensors are divided by 20. That changes how often a job pauses, but not how fast slots "
        "find "
        "aggregators, so the time is compared as it is.",
    .inputs = inputs_of_sharing,
    .draw = draw_fig13b,
};

const Figure fig13c{
    .id = "fig13c",
    .title = "Active jobs use the aggregators of an idle job",
    .source = "ATP, section 5.4.1",
    .claim =
        "With 33% of the aggregators, when one job enters an off phase, the number of in-network aggregations for the "
        "remaining jobs increases.",
    .setup =
        "The jobs of fig13a start a third of an iteration apart. The chart shows the packets that the switch adds in "
        "each interval. The height of the increase is only plotted.",
    .inputs = inputs_of_sharing,
    .draw = draw_fig13c,
};

}  // namespace atp::figure
