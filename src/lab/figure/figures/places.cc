// SPDX-License-Identifier: Apache-2.0
// Beyond the papers: the position of a job's server.
#include "figure/figures/figures.h"
#include "figure/figures/points.h"

namespace atp::figure {
namespace {

struct Place {
    const char* name;
    sim::ServerPlacement place;
};
constexpr Place places[] = {{"on its own host, as in the paper", sim::ServerPlacement::dedicated},
                            {"on the switch host", sim::ServerPlacement::on_switch},
                            {"on a worker's host", sim::ServerPlacement::colocated}};

Drawing draw_server(const Lab& lab) {
    sim::Scenario tensor = testbed("star:8");
    tensor.bytes = lab.pick<std::uint64_t>(4'000'000, 100'000'000);
    sim::Scenario scarce = tensor;
    scarce.aggregators = 64;  // a quarter of the window
    sim::Scenario training = testbed("star:8");
    training.models = {"VGG16"};
    training.scale = lab.pick(400.0, 50.0);
    training.iterations = 3;
    std::vector<sim::Scenario> points;
    for (const Place& place : places) {
        for (sim::Scenario point : {tensor, scarce, training}) {
            point.server = place.place;
            points.push_back(point);
        }
    }
    const std::vector<sim::Report> reports = lab.run(points);

    BarChart goodput{.title = "One tensor",
                     .y = {.label = "goodput of a worker, Gbit/s"},
                     .categories = {"memory for the whole window", "memory for a quarter of the window"}};
    BarChart throughput{
        .title = "Training", .y = {.label = "samples per second of each worker"}, .categories = {"VGG16"}};
    for (std::size_t i = 0; i < std::size(places); ++i) {
        const sim::Report* here = &reports[3 * i];
        goodput.bars.push_back({.name = places[i].name, .values = {goodput_gbps(here[0]), goodput_gbps(here[1])}});
        throughput.bars.push_back({.name = places[i].name, .values = {samples_per_s(here[2])}});
    }
    const auto ratio = [](const BarChart& chart, std::size_t place, std::size_t category) {
        return chart.bars[place].values[category] / chart.bars[0].values[category];
    };
    Drawing drawing;
    drawing.checks = {
        equal(1, "one tensor, server on the switch host: relative to a dedicated host", ratio(goodput, 1, 0)),
        number(0.5, same_ratio, "one tensor, server on a worker's host: relative to a dedicated host",
               ratio(goodput, 2, 0)),
        notified("scarce memory, server on the switch host: relative to a dedicated host", ratio(goodput, 1, 1)),
        notified("scarce memory, server on a worker's host: relative to a dedicated host", ratio(goodput, 2, 1)),
        equal(1, "training, server on the switch host: relative to a dedicated host", ratio(throughput, 1, 0)),
        equal(1, "training, server on a worker's host: relative to a dedicated host", ratio(throughput, 2, 0))};
    drawing.charts = {goodput, throughput};
    return drawing;
}

}  // namespace

const Figure beyond_server{
    .id = "beyond-server",
    .title = "Position of the server",
    .source = "beyond the papers",
    .claim =
        "A server on the switch host needs no host of its own, and costs no goodput while the switch has enough "
        "aggregators. A server on a worker's host takes half of that worker's link: the sum of a tensor takes twice "
        "as long, but a training that computes hides the cost.",
    .setup =
        "Eight workers are below one switch; hosts are as fast as in figure 19 of the ATP paper. If the switch has "
        "memory for only a quarter of the window, the server adds the other packets, and the processors of its host "
        "limit the goodput.",
    .draw = draw_server,
};

}  // namespace atp::figure
