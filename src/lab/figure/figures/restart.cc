// SPDX-License-Identifier: Apache-2.0
// Beyond the papers: the switch restarts during a job.
#include <array>
#include <chrono>

#include "figure/figures/figures.h"
#include "figure/figures/points.h"

namespace atp::figure {
namespace {

using std::chrono::microseconds;

constexpr double join_interval_ms = 250;

Drawing draw_restart(const Lab& lab) {
    const Duration at = lab.pick(microseconds(1000), microseconds(8000));
    const Duration lasts = lab.pick(microseconds(1000), microseconds(5000));
    sim::Scenario point = testbed("star:4");
    point.bytes = lab.pick<std::uint64_t>(20'000'000, 200'000'000);
    point.sample = lab.pick(microseconds(100), microseconds(500));
    sim::Scenario restart = point;
    restart.faults.outages = {{.at = Time(at), .lasts = lasts}};
    const std::vector<sim::Report> reports = lab.run({point, restart});

    const auto course = [&](std::size_t i, const char* name) {
        return course_of(name, reports[i].series->job_bytes.front(), reports[i].series->interval);
    };
    const std::vector<Line> lines = {course(0, "no restart"), course(1, "the switch restarts")};
    const double outage = to_milliseconds(lasts);
    const double lost = to_milliseconds(reports[1].jobs.front().time() - reports[0].jobs.front().time());
    // What is left when the outage begins takes as long after it.
    const double left = to_milliseconds(reports[0].jobs.front().time()) - to_milliseconds(at);
    const double end = to_milliseconds(reports[1].jobs.front().time());
    const double back = end - 0.9 * left;
    Drawing drawing;
    drawing.checks = {
        order("time lost: above the outage, and below the outage and an interval of 250 ms; smallest ratio",
              std::array{outage + join_interval_ms, lost, outage}),
        equal(1, "goodput after the restart relative to before",
              average_between(lines[1], back, end - 0.1 * left) / average_between(lines[1], 0, to_milliseconds(at))),
        notified("time lost, ms", lost),
        notified("share of packets that are resent", static_cast<double>(reports[1].jobs.front().worker.resent) /
                                                         static_cast<double>(reports[1].jobs.front().worker.sent))};
    drawing.charts = {LineChart{.title = "Four workers, one tensor",
                                .x = {.label = "time, ms", .from = 0},
                                .y = {.label = "goodput of a worker, Gbit/s", .from = 0},
                                .lines = lines}};
    return drawing;
}

}  // namespace

const Figure beyond_restart{
    .id = "beyond-restart",
    .title = "The switch restarts during a job",
    .source = "beyond the papers",
    .claim =
        "A switch that restarts with empty memory costs the time of its outage, and then until its members have joined "
        "it again, which they do every 250 ms. No worker restarts, and every sum is correct to the last bit.",
    .setup =
        "Packets that reach the switch during the outage are lost, and so are the partial sums in the switch. "
        "The parameter server is on another host, so its sums stay. Workers send PROBEs to detect the loss when their "
        "timers expire. The timers double up to 200 ms.",
    .draw = draw_restart,
};

}  // namespace atp::figure
