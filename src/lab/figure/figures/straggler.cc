// SPDX-License-Identifier: Apache-2.0
// Beyond the papers: requests for missing results, compared with resends.
#include <chrono>

#include "figure/figures/figures.h"
#include "figure/figures/points.h"

namespace atp::figure {
namespace {

using std::chrono::milliseconds;

// The last worker starts every iteration after the timers of the others have expired several times.
sim::Scenario with_straggler(const Lab& lab, bool blind) {
    constexpr Duration late = milliseconds(5);
    sim::Scenario point = testbed("star:8");
    point.blind_resend = blind;
    point.linear = true;
    point.bytes = 62'000;  // one window
    point.pause = milliseconds(1);
    point.iterations = lab.pick(10U, 50U);
    for (unsigned i = 0; i < point.iterations; ++i) {
        point.faults.outages.push_back({.kind = sim::Outage::Kind::pause,
                                        .node = sim::Outage::Node::worker,
                                        .index = 7,
                                        .at = Time(i * (late + point.pause)),
                                        .lasts = late});
    }
    return point;
}

Drawing draw_probe(const Lab& lab) {
    const std::vector<sim::Report> reports = lab.run({with_straggler(lab, false), with_straggler(lab, true)});
    BarChart bytes{.title = "Into the server", .y = {.label = "bytes with headers, times the tensor's"}};
    BarChart packets{.title = "Sent by workers beyond the first time", .y = {.label = "packets, of those sent once"}};
    bytes.bars = {{.name = "eight workers, one of them late"}};
    packets.bars = {{.name = "probes"}, {.name = "fragments sent again"}};
    for (const sim::Report& report : reports) {
        const sim::JobReport& job = report.jobs.front();
        const double fragments = static_cast<double>(job.server.completed) * job.workers;
        bytes.bars[0].values.push_back(static_cast<double>(job.server_bytes) / static_cast<double>(job.tensor_bytes));
        packets.bars[0].values.push_back(static_cast<double>(job.worker.probes) / fragments);
        packets.bars[1].values.push_back(static_cast<double>(job.worker.resent) / fragments);
    }
    bytes.categories = packets.categories = {"PROBE", "blind resend"};
    Drawing drawing;
    drawing.checks = {
        at_least(1.2, "bytes into the server with blind resends, times with probes",
                 bytes.bars[0].values[1] / bytes.bars[0].values[0]),
        at_most(1e-6, "fragments sent again with probes, of all", packets.bars[1].values[0]),
        notified("time with blind resends, times with probes",
                 to_milliseconds(reports[1].jobs.front().time()) / to_milliseconds(reports[0].jobs.front().time()))};
    drawing.charts = {bytes, packets};
    return drawing;
}

}  // namespace

const Figure beyond_probe{
    .id = "beyond-probe",
    .title = "A late worker: asking beside sending again",
    .source = "beyond the papers",
    .claim =
        "A worker whose timer expires cannot know whether its packet was lost or another worker is late. Where it asks "
        "the server, the sums of the others wait in the switch; where it sends again, as in the paper, they are taken "
        "out, and the server adds what the switch could have.",
    .setup =
        "Seven of eight workers wait in every iteration for the last, for 5 ms, where timers wait for 1 ms and then "
        "for "
        "longer; nothing is lost. Each expiry asks for, or resends, the eight oldest fragments.",
    .draw = draw_probe,
};

}  // namespace atp::figure
