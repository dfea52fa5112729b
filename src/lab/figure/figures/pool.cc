// SPDX-License-Identifier: Apache-2.0
// The number of switch slots that SwitchML needs.
#include "figure/figures/claims.h"
#include "figure/figures/figures.h"
#include "figure/figures/points.h"
#include "switchml/packet.h"

namespace atp::figure {
namespace {

constexpr double microseconds_a_millisecond = 1e3;

// Packets in flight that fill a link.
double slots_of_bandwidth_delay(const sim::Scenario& point, double round_trip_us) {
    const double packet = switchml::header_bytes + double{switchml::paper_lanes} * sizeof(float) + point.overhead_bytes;
    return static_cast<double>(point.rate_bits_per_s) * round_trip_us * 1e-6 / 8 / packet;
}

constexpr Input inputs_of_switchml_fig2[] = {
    {"eight workers at 100 Gbit/s, packets of 32 elements", Origin::paper, "sections 3.6 and 5.1"},
    {"delay of a link", Origin::free, "1 us; the product is computed from it"},
};

Drawing draw_switchml_fig2(const Lab& lab) {
    const std::vector<std::uint32_t> pools = lab.pick<std::vector<std::uint32_t>>(
        {16, 32, 64, 128, 256, 1024}, {16, 32, 64, 128, 256, 512, 1024, 2048, 4096});
    std::vector<sim::Scenario> points;
    for (const std::uint32_t pool : pools) {
        sim::Scenario point = testbed("star:8");
        point.systems = {*sim::parse_system("switchml")};
        point.host_cost = {};
        point.delay = Duration(lab.free("delay of a link", point.delay.count()));
        point.switchml.pool = pool;
        point.bytes = lab.pick<std::uint64_t>(4'000'000, 100'000'000);
        points.push_back(point);
    }
    const std::vector<sim::Report> reports = lab.run(points);

    Line time{.name = "time of the tensor"};
    Line round_trip{.name = "round trip of a packet"};
    for (std::size_t i = 0; i < reports.size(); ++i) {
        const sim::JobReport& job = reports[i].jobs.front();
        time.x.push_back(pools[i]);
        time.y.push_back(to_milliseconds(job.time()));
        round_trip.x.push_back(pools[i]);
        round_trip.y.push_back(to_milliseconds(job.switchml->round_trip) * microseconds_a_millisecond);
    }
    const double slots = slots_of_bandwidth_delay(points.front(), round_trip.y.front());
    Drawing drawing;
    drawing.checks = checks_of_pool(time, round_trip, slots);
    drawing.charts = {LineChart{.title = "Time of a tensor",
                                .x = {.label = "slots", .logarithmic = true, .ticks_at_numbers = true},
                                .y = {.label = "ms", .from = 0},
                                .lines = {time}},
                      LineChart{.title = "Round trip of a packet",
                                .x = {.label = "slots", .logarithmic = true, .ticks_at_numbers = true},
                                .y = {.label = "us", .from = 0},
                                .lines = {round_trip}}};
    return drawing;
}

}  // namespace

const Figure switchml_fig2{
    .id = "switchml-fig2",
    .title = "The size of SwitchML's pool",
    .source = "SwitchML, section 3.6",
    .claim =
        "To sustain line rate, the slots have to match the bandwidth-delay product. A higher number will unnecessarily "
        "increase queuing time within the workers. The paper uses 512 at 100 Gbps.",
    .setup =
        "Eight workers at 100 Gbit/s sum one tensor; hosts take no time. Links are short here, so the product is "
        "smaller "
        "than the paper's, and is computed from the round trip with the fewest slots.",
    .basis = Basis::arithmetic,
    .inputs = inputs_of_switchml_fig2,
    .once = true,
    .draw = draw_switchml_fig2,
};

}  // namespace atp::figure
