// SPDX-License-Identifier: Apache-2.0
// The traffic that a second level of aggregation saves at the server.
#include "figure/figures/claims.h"
#include "figure/figures/figures.h"
#include "figure/figures/points.h"

namespace atp::figure {
namespace {

constexpr Input inputs_of_fig9[] = {{"topology", Origin::paper, "figure 9"}};

Drawing draw_fig9(const Lab& lab) {
    sim::Scenario everywhere = testbed("fig9");
    everywhere.bytes = lab.pick<std::uint64_t>(1'000'000, 16'000'000);
    everywhere.linear = true;  // the only job: no collisions
    sim::Scenario racks = everywhere;
    racks.aggregation = sim::Aggregation::racks;
    sim::Scenario nowhere = everywhere;
    nowhere.aggregation = sim::Aggregation::nowhere;

    Bars bars{.name = "into the server"};
    for (const sim::Report& report : lab.run({everywhere, racks, nowhere})) {
        const sim::JobReport& job = report.jobs.front();
        bars.values.push_back(static_cast<double>(job.server.bytes) / static_cast<double>(job.tensor_bytes));
    }
    Drawing drawing;
    drawing.checks = checks_of_fig9(bars.values);
    drawing.charts = {BarChart{.title = "Six workers in three racks; the server is in the last rack",
                               .y = {.label = "bytes with headers, relative to the tensor"},
                               .categories = {"ATP", "racks only (RSS)", "no aggregation"},
                               .bars = {bars}}};
    return drawing;
}

}  // namespace

std::vector<Check> checks_of_fig9(const std::vector<double>& bytes) {
    return {number(3, same_ratio, "bytes into the server with aggregation within racks only, relative to ATP",
                   bytes[1] / bytes[0]),
            number(2.0 / 3, same_ratio, "share of this traffic that ATP eliminates", 1 - bytes[0] / bytes[1]),
            notified("bytes into the server without aggregation, relative to ATP", bytes[2] / bytes[0])};
}

const Figure fig9{
    .id = "fig9",
    .title = "Traffic into the server, with aggregation across racks",
    .source = "ATP, section 5.2.2",
    .claim =
        "Six workers run in three racks, and the server is connected to the third switch. With a rack-scale solution, "
        "the server receives 3X more traffic than with ATP, which eliminates 2/3 of it.",
    .setup = "The topology is that of the paper; one job sums one tensor. Nothing collides and nothing is lost.",
    .basis = Basis::arithmetic,
    .inputs = inputs_of_fig9,
    .once = true,
    .draw = draw_fig9,
};

}  // namespace atp::figure
