// SPDX-License-Identifier: Apache-2.0
// The number of slots that SwitchML needs on real links.
#include "figure/figures/claims.h"
#include "figure/real/real_figures.h"
#include "figure/trial.h"
#include "switchml/packet.h"

namespace atp::figure {
namespace {

constexpr double microseconds_a_second = 1e6;
constexpr double packet_bits =
    8.0 * (switchml::lower_header_bytes + switchml::header_bytes + switchml::paper_lanes * switchml::int32_lane_bytes);
constexpr double payload_bits = 8.0 * switchml::paper_lanes * switchml::int32_lane_bytes;

Trial with_slots(const Lab& lab, std::uint32_t slots) {
    sim::Scenario links = linked("star:2", 60'000'000);
    links.bytes = lab.pick<std::uint64_t>(500'000, 2'000'000);
    // Nothing is lost, so the timer only has to be longer than any queue.
    return switchml_trial(links, {.pool = slots, .lanes = switchml::paper_lanes, .timeout = std::chrono::seconds(2)});
}

constexpr Input inputs_of_real_pool[] = {
    {"packets of 32 elements", Origin::paper, "section 3.4"},
    {"round trip of a packet", Origin::measured, "with the fewest slots; the product is computed from it"},
};

Drawing draw_real_switchml_fig2(const Lab& lab) {
    const std::vector<std::uint32_t> pools =
        lab.pick<std::vector<std::uint32_t>>({2, 4, 8, 16, 1024}, {2, 4, 8, 16, 32, 64, 1024});
    std::vector<Trial> trials;
    std::vector<sim::Scenario> points;
    for (const std::uint32_t slots : pools) trials.push_back(with_slots(lab, slots));
    for (const Trial& trial : trials) points.push_back(trial.network);
    const std::vector<Outcome> outcomes = measured(lab, trials);
    const std::vector<sim::Report> reports = lab.run(points);

    Line time{.name = "SwitchML"};
    Line round_trip{.name = "SwitchML"};
    Line time_simulated{.name = time.name + std::string(simulated)};
    Line round_trip_simulated = time_simulated;
    for (std::size_t i = 0; i < pools.size(); ++i) {
        for (Line* line : {&time, &round_trip, &time_simulated, &round_trip_simulated}) line->x.push_back(pools[i]);
        time.y.push_back(outcomes[i].seconds("switchml"));
        round_trip.y.push_back(pools[i] * payload_bits / outcomes[i].goodput_bps("switchml") * microseconds_a_second);
        const double simulated_bps = reports[i].jobs.front().goodput_bits_per_s();
        time_simulated.y.push_back(static_cast<double>(points[i].bytes) * 8 / simulated_bps);
        round_trip_simulated.y.push_back(pools[i] * payload_bits / simulated_bps * microseconds_a_second);
    }
    const double product = static_cast<double>(points.front().rate_bits_per_s) * round_trip.y.front() /
                           microseconds_a_second / packet_bits;
    Drawing drawing;
    drawing.checks = checks_of_pool(time, round_trip, product);
    drawing.charts = {LineChart{.title = "Time of a tensor",
                                .x = {.label = "slots", .logarithmic = true, .ticks_at_numbers = true},
                                .y = {.label = "seconds", .from = 0},
                                .lines = {time, time_simulated}},
                      LineChart{.title = "Round trip of a packet",
                                .x = {.label = "slots", .logarithmic = true, .ticks_at_numbers = true},
                                .y = {.label = "us", .from = 0},
                                .lines = {round_trip, round_trip_simulated}}};
    return drawing;
}

}  // namespace

const Figure real_switchml_fig2{
    .id = "switchml-fig2",
    .setup =
        "Two workers at 60 Mbit/s sum one tensor in packets of 180 bytes: more workers would need more packets per "
        "second than this machine sends. A slot always has one packet in flight, so the round trip is the number of "
        "slots divided by the packets per second. The fewest slots do not fill a link.",
    .basis = Basis::sockets,
    .inputs = inputs_of_real_pool,
    .seconds = 90,
    .draw = draw_real_switchml_fig2,
};

}  // namespace atp::figure
