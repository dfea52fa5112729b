// SPDX-License-Identifier: Apache-2.0
// Beyond the papers: many racks of workers.
#include <fmt/format.h>

#include "figure/figures/figures.h"
#include "figure/figures/points.h"

namespace atp::figure {
namespace {

Drawing draw_scale(const Lab& lab) {
    const std::vector<unsigned> sides = lab.pick<std::vector<unsigned>>({2, 4, 8}, {2, 4, 8, 16, 32});
    const auto scenario = [&](unsigned side, bool linear, const char* system) {
        sim::Scenario point = testbed(fmt::format("racks:{0}x{0}", side));
        point.systems = {*sim::parse_system(system)};
        point.linear = linear;
        point.server = sim::ServerPlacement::on_switch;  // a JOIN of 1,024 ranks to another host needs longer packets
        point.host_cost = {};
        point.bytes = lab.pick<std::uint64_t>(500'000, 1'000'000);
        point.iterations = 3;
        return point;
    };
    std::vector<sim::Scenario> points;
    for (const unsigned side : sides) {
        points.push_back(scenario(side, true, "atp"));
        points.push_back(scenario(side, false, "atp"));
        points.push_back(scenario(side, false, "ring:rdma"));
    }
    const std::vector<sim::Report> reports = lab.run(points);

    std::vector<Line> lines{{.name = "ATP, no collisions"}, {.name = "ATP, hashed"}, {.name = "ring (RDMA)"}};
    for (std::size_t i = 0; i < reports.size(); ++i) {
        const double side = sides[i / lines.size()];
        lines[i % lines.size()].x.push_back(side * side);
        lines[i % lines.size()].y.push_back(settled_goodput_gbps(reports[i]));
    }
    Drawing drawing;
    drawing.checks = {
        flat("ATP without collisions, over the workers: greatest goodput relative to the least", lines[0].y),
        flat("ATP, hashed, over the workers: greatest goodput relative to the least", lines[1].y),
        notified("ATP, hashed, most workers: goodput relative to no collisions", lines[1].y.back() / lines[0].y.back()),
        notified("ATP, hashed, most workers: goodput relative to the ring", lines[1].y.back() / lines[2].y.back())};
    drawing.charts = {LineChart{.title = "As many racks as workers per rack",
                                .x = {.label = "workers", .logarithmic = true, .ticks_at_numbers = true},
                                .y = {.label = "goodput of a worker, Gbit/s", .from = 0},
                                .lines = lines}};
    return drawing;
}

}  // namespace

const Figure beyond_scale{
    .id = "beyond-scale",
    .title = "Up to 32 racks of 32 workers",
    .source = "beyond the papers",
    .claim = "Two levels of switches sum for 1,024 workers as fast as for four, hashed aggregators included.",
    .setup =
        "The number of racks equals the number of workers per rack. The server runs on the root switch's host, and "
        "hosts take no time per packet. If a slot has no aggregator of its own, the packets of all workers go to the "
        "server; this traffic grows with the number of workers. Goodput excludes the first round, in which slots "
        "search for aggregators.",
    .draw = draw_scale,
};

}  // namespace atp::figure
