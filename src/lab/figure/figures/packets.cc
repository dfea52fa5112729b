// SPDX-License-Identifier: Apache-2.0
// Beyond the papers: packets that fill an Ethernet frame.
#include "figure/figures/figures.h"
#include "figure/figures/points.h"

namespace atp::figure {
namespace {

// Multiples of eight lanes that fit 1,500 bytes after the headers of IP, UDP and ATP.
constexpr std::uint16_t mtu_lanes = 352;
constexpr std::uint16_t paper_lanes = 62;
constexpr std::uint32_t paper_aggregators = 4096;

Drawing draw_mtu(const Lab& lab) {
    std::vector<sim::Scenario> points;
    for (const std::uint16_t lanes : {paper_lanes, mtu_lanes}) {
        sim::Scenario point = testbed("star:8");
        point.bytes = lab.pick<std::uint64_t>(8'000'000, 200'000'000);
        point.lanes = lanes;
        point.aggregators = paper_aggregators * paper_lanes / lanes;  // the same memory in lanes
        points.push_back(point);
        point.host_cost = {};
        points.push_back(point);
    }
    const std::vector<sim::Report> reports = lab.run(points);

    const Bars small{.name = "62 lanes, as in the paper",
                     .values = {goodput_gbps(reports[1]), goodput_gbps(reports[0])}};
    const Bars large{.name = "352 lanes", .values = {goodput_gbps(reports[3]), goodput_gbps(reports[2])}};
    Drawing drawing;
    drawing.checks = {
        number(1.25, same_ratio, "limited by the wire: 352 lanes relative to 62", large.values[0] / small.values[0]),
        number(1.25, same_ratio, "limited by hosts that copy: 352 lanes relative to 62",
               large.values[1] / small.values[1])};
    drawing.charts = {BarChart{.title = "Eight workers, one tensor, the same memory in the switch",
                               .y = {.label = "goodput of a worker, Gbit/s"},
                               .categories = {"limited by the wire only", "hosts as in the paper"},
                               .bars = {small, large},
                               .levels = {{.name = "line rate", .value = 100}}}};
    return drawing;
}

}  // namespace

const Figure beyond_mtu{
    .id = "beyond-mtu",
    .title = "Packets that fill an Ethernet frame",
    .source = "beyond the papers",
    .claim =
        "If a switch adds 352 lanes per packet instead of 62, the same wire carries a quarter more gradients. The "
        "same hosts also send a quarter more, because they copy fewer headers.",
    .setup = "The switch has the same memory for lanes in both cases, so it has fewer aggregators for larger packets.",
    .draw = draw_mtu,
};

}  // namespace atp::figure
