// SPDX-License-Identifier: Apache-2.0
// Elements per second that SwitchML sums on real links: with more workers, larger packets and shorter numbers.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "figure/figures/claims.h"
#include "figure/real/real_figures.h"
#include "figure/table.h"
#include "figure/trial.h"
#include "switchml/packet.h"

namespace atp::figure {
namespace {

constexpr std::int64_t rate_bps = 10'000'000;  // of twelve hosts' links: 180 bytes are 7,000 packets a second each
constexpr double bits_of_float = 32;
constexpr double one_million = 1e6;
// Of ATP: headers then take 29 % of a packet, as they do of SwitchML's 180 bytes.
constexpr std::uint16_t server_lanes = 60;

// Nothing is lost, so the timer only has to be longer than any queue.
Trial switchml_of(std::string_view topology, std::uint16_t lanes, std::uint64_t bytes) {
    sim::Scenario links = linked(topology, rate_bps);
    links.bytes = bytes;
    return switchml_trial(links, {.pool = 64, .lanes = lanes, .timeout = std::chrono::seconds(1)});
}

// Of the bytes that a link carries without preamble and gap.
double bound_of_lanes(double lanes) {
    const double bytes = lanes * switchml::int32_lane_bytes;
    return bytes / (bytes + switchml::header_bytes + switchml::lower_header_bytes);
}

constexpr Input inputs_of_real_elements[] = {
    {"packets of 32 elements", Origin::paper, "section 3.4"},
    {"64 slots", Origin::measured, "more than fill a link (switchml-fig2)"},
};

// Servers add the packets of ATP, as no switch does.
Trial servers_of(std::string_view topology, std::uint64_t bytes) {
    Trial trial{.network = linked(topology, rate_bps),
                .systems = {"atp", "atp-none", "gloo"},
                .flags = {fmt::format("--rank-flags=--lanes {}", server_lanes)}};
    trial.network.lanes = server_lanes;
    trial.network.bytes = bytes;
    trial.network.aggregators = 0;
    return trial;
}

Drawing draw_real_switchml_fig4(const Lab& lab) {
    const std::vector<unsigned> workers = lab.pick<std::vector<unsigned>>({4, 8}, {4, 8, 12});
    const auto bytes = lab.pick<std::uint64_t>(250'000, 500'000);
    std::vector<Trial> of_switchml;
    std::vector<Trial> of_servers;
    std::vector<sim::Scenario> points;
    for (const unsigned count : workers) {
        of_switchml.push_back(switchml_of(fmt::format("star:{}", count), switchml::paper_lanes, bytes));
        of_servers.push_back(servers_of(fmt::format("star:{}", count), bytes));
        points.push_back(of_switchml.back().network);
    }
    const std::vector<Outcome> switchml = measured(lab, of_switchml);
    const std::vector<Outcome> servers = measured(lab, of_servers);
    const std::vector<sim::Report> reports = lab.run(points);

    const double bound = static_cast<double>(rate_bps) * bound_of_lanes(switchml::paper_lanes) / bits_of_float;
    LineChart chart{.title = "10 Mbit/s",
                    .x = {.label = "workers", .from = 0},
                    .y = {.label = "million elements per second", .from = 0},
                    .lines = {{.name = "SwitchML"},
                              {.name = "a server on each worker's host"},
                              {.name = "Gloo"},
                              {.name = "dedicated servers"},
                              {.name = "SwitchML" + std::string(simulated)}},
                    .levels = {{.name = "limit of SwitchML's packets", .value = bound / one_million}}};
    for (std::size_t i = 0; i < workers.size(); ++i) {
        const double goodputs[] = {switchml[i].goodput_bps("switchml"), servers[i].goodput_bps("atp-none"),
                                   servers[i].goodput_bps("gloo"), servers[i].goodput_bps("atp"),
                                   reports[i].jobs.front().goodput_bits_per_s()};
        for (std::size_t k = 0; k < chart.lines.size(); ++k) {
            chart.lines[k].x.push_back(workers[i]);
            chart.lines[k].y.push_back(goodputs[k] / bits_of_float / one_million);
        }
    }
    Drawing drawing;
    drawing.checks =
        checks_of_elements(chart.title, {chart.lines[0].y, chart.lines[1].y, chart.lines[2].y}, bound / one_million);
    drawing.checks.push_back(equal(1, chart.title + ": dedicated servers relative to SwitchML",
                                   chart.lines[3].y.back() / chart.lines[0].y.back()));
    drawing.charts = {chart};
    return drawing;
}

// Of the bytes that a worker's host sent.
double share_of_headers(const Outcome& outcome) {
    return 1 - outcome.number("/bytes") / outcome.number("/systems/switchml/traffic_of_an_operation/host_sent_bytes");
}

Drawing draw_real_switchml_fig7(const Lab& lab) {
    const std::vector<double> sizes = lab.pick<std::vector<double>>({2}, {1, 4});
    const std::vector<std::uint16_t> lanes{switchml::paper_lanes, linked("star:8", rate_bps).lanes};
    std::vector<Trial> trials;
    std::vector<sim::Scenario> points;
    for (const std::uint16_t count : lanes) {
        for (const double megabytes : sizes) {
            trials.push_back(switchml_of("star:8", count, static_cast<std::uint64_t>(megabytes * one_million)));
            points.push_back(trials.back().network);
        }
    }
    const std::vector<Outcome> outcomes = measured(lab, trials);
    const std::vector<sim::Report> reports = lab.run(points);
    BarChart chart{.title = "Eight workers at 10 Mbit/s", .y = {.label = "time, s"}};
    for (const double megabytes : sizes) chart.categories.push_back(number_text(megabytes) + " MB");
    for (std::size_t i = 0; i < lanes.size(); ++i) {
        Bars bars{.name = fmt::format("{} elements per packet", lanes[i])};
        Bars simulated_bars{.name = bars.name + std::string(simulated)};
        for (std::size_t k = 0; k < sizes.size(); ++k) {
            const std::size_t at = i * sizes.size() + k;
            bars.values.push_back(outcomes[at].seconds("switchml"));
            simulated_bars.values.push_back(static_cast<double>(points[at].bytes) * 8 /
                                            reports[at].jobs.front().goodput_bits_per_s());
        }
        chart.bars.push_back(std::move(bars));
        chart.bars.push_back(std::move(simulated_bars));
    }
    Drawing drawing;
    drawing.checks = checks_of_mtu(chart.bars[2].values.back() / chart.bars[0].values.back(),
                                   share_of_headers(outcomes[sizes.size() - 1]), share_of_headers(outcomes.back()));
    drawing.checks.push_back(
        notified("this time, by the bytes of the frames", bound_of_lanes(lanes[0]) / bound_of_lanes(lanes[1])));
    drawing.charts = {chart};
    return drawing;
}

Drawing draw_real_switchml_fig8(const Lab& lab) {
    const auto bytes = lab.pick<std::uint64_t>(500'000, 1'000'000);
    const Trial floats = switchml_of("star:8", switchml::paper_lanes, bytes);
    const Trial halved = switchml_of("star:8", switchml::paper_lanes, bytes / 2);
    Trial integers = floats;
    integers.flags.insert(integers.flags.end(), {"--type", "int32"});
    Trial atp{.network = floats.network, .systems = {"atp"}};
    Trial atp_halves{.network = halved.network, .systems = {"atp"}, .flags = {"--type", "float16"}};
    const std::vector<Outcome> outcomes = measured(lab, {integers, floats, halved, atp, atp_halves});
    const double native = outcomes[0].seconds("switchml");
    const double scaled = outcomes[1].seconds("switchml");
    const double half = outcomes[2].seconds("switchml");
    Drawing drawing;
    drawing.checks = checks_of_conversion(scaled / native, half / scaled);
    drawing.checks.push_back(notified("ATP: time with float16 in 16-bit lanes, relative to float32",
                                      outcomes[4].seconds("atp") / outcomes[3].seconds("atp")));
    drawing.charts = {BarChart{.title = fmt::format("Eight workers at 10 Mbit/s, {} MB of 32-bit elements",
                                                    static_cast<double>(bytes) / one_million),
                               .y = {.label = "time, s"},
                               .categories = {"integers", "floats", "half of the bytes"},
                               .bars = {{.name = "SwitchML", .values = {native, scaled, half}}}}};
    return drawing;
}

}  // namespace

const Figure real_switchml_fig4{
    .id = "switchml-fig4",
    .setup =
        "One tensor of 2 MB. Servers are those of ATP in packets of 338 bytes, of which headers take 29 % as of "
        "SwitchML's 180 bytes: on each worker's host, or on the switch's, where no link limits them, as none limits "
        "the paper's dedicated servers, one per worker. Gloo has the fastest of its four algorithms.",
    .basis = Basis::sockets,
    .inputs = inputs_of_real_elements,
    .seconds = 200,
    .draw = draw_real_switchml_fig4,
};

const Figure real_switchml_fig7{
    .id = "switchml-fig7",
    .setup =
        "The longest packets have 352 elements, as many as a slot of the switch has if its frames carry 1,500 bytes. "
        "Links count neither preamble nor gap, so packets of 180 bytes lose less than on a wire. "
        "Shares of headers are those of the bytes that a host sent.",
    .basis = Basis::sockets,
    .inputs = inputs_of_real_elements,
    .seconds = 90,
    .draw = draw_real_switchml_fig7,
};

const Figure real_switchml_fig8{
    .id = "switchml-fig8",
    .setup =
        "Times of a tensor of integers, which nothing converts, of floats, and of half as many bytes: the paper "
        "also emulates float16 so. ATP, in the last row, really sends 16-bit lanes.",
    .basis = Basis::sockets,
    .inputs = inputs_of_real_elements,
    .seconds = 110,
    .draw = draw_real_switchml_fig8,
};

}  // namespace atp::figure
