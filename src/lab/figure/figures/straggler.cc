// SPDX-License-Identifier: Apache-2.0
// Beyond the papers: requests for missing results, compared with resends.
#include <array>
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
    BarChart bytes{.title = "Into the server", .y = {.label = "bytes with headers, relative to the tensor"}};
    BarChart packets{.title = "Additional packets of workers",
                     .y = {.label = "packets, relative to the fragments sent once"}};
    bytes.bars = {{.name = "eight workers, one of them late"}};
    packets.bars = {{.name = "PROBEs"}, {.name = "resent fragments"}};
    for (const sim::Report& report : reports) {
        const sim::JobReport& job = report.jobs.front();
        const double fragments = static_cast<double>(job.server.completed) * job.workers;
        bytes.bars[0].values.push_back(static_cast<double>(job.server.bytes) / static_cast<double>(job.tensor_bytes));
        packets.bars[0].values.push_back(static_cast<double>(job.worker.probes) / fragments);
        packets.bars[1].values.push_back(static_cast<double>(job.worker.resent) / fragments);
    }
    bytes.categories = packets.categories = {"PROBE", "blind resend"};
    Drawing drawing;
    drawing.checks = {
        order("bytes into the server with blind resends, relative to PROBEs",
              std::array{bytes.bars[0].values[1], bytes.bars[0].values[0]}),
        equal(0, "share of fragments that are resent with PROBEs", packets.bars[1].values[0]),
        notified("time with blind resends, relative to PROBEs",
                 to_milliseconds(reports[1].jobs.front().time()) / to_milliseconds(reports[0].jobs.front().time()))};
    drawing.charts = {bytes, packets};
    return drawing;
}

}  // namespace

const Figure beyond_probe{
    .id = "beyond-probe",
    .title = "A late worker: PROBE compared with resend",
    .source = "beyond the papers",
    .claim =
        "If the timer of a worker expires, the worker cannot know whether its packet was lost or another worker is "
        "late. If it asks the server with a PROBE, the partial sums of the others stay in the switch. If it resends, "
        "as in the paper, the switch releases the partial sums, and the server adds what the switch could have added.",
    .setup =
        "In every iteration, seven of eight workers wait for the last worker for 5 ms. Their timers expire after 1 "
        "ms at first, then after longer times. No packet is lost. When its timer expires, a worker asks for its "
        "eight oldest fragments or resends them.",
    .draw = draw_probe,
};

}  // namespace atp::figure
