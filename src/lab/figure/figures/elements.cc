// SPDX-License-Identifier: Apache-2.0
// Elements per second that SwitchML sums: with more workers, larger packets and shorter numbers.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>

#include "figure/figures/claims.h"
#include "figure/figures/figures.h"
#include "figure/figures/points.h"
#include "figure/table.h"
#include "numeric/lanes32_worker.h"
#include "switchml/packet.h"

namespace atp::figure {
namespace {

constexpr std::int64_t slow = 10'000'000'000;
constexpr std::int64_t fast = 100'000'000'000;
constexpr double bits_of_element = 32;
constexpr double million = 1e6;

// Hosts take no time per packet: the wire is the limit, as with the many cores of the paper.
sim::Scenario tensor_at(std::string_view topology, const char* system, std::int64_t rate) {
    sim::Scenario point = testbed(topology);
    point.systems = {*sim::parse_system(system)};
    point.rate_bits_per_s = rate;
    point.host_cost = {};
    point.rdma_cost = {};
    return point;
}

double elements_per_s(const sim::Report& report) { return goodput_gbps(report) * giga / bits_of_element; }

// Headers of Ethernet, IPv4 and UDP, as the paper counts a packet of 180 bytes.
constexpr double counted_headers = 14 + 20 + 8 + switchml::header_bytes;

double share_of_headers(std::size_t lanes) {
    return counted_headers / (counted_headers + static_cast<double>(lanes * switchml::int32_lane_bytes));
}

// Share of the bytes on the wire, including the gap between packets.
double share_of_lanes(const sim::Scenario& point, std::size_t lanes) {
    const double bytes = static_cast<double>(lanes * switchml::int32_lane_bytes);
    return bytes / (bytes + switchml::header_bytes + point.overhead_bytes);
}

constexpr Input inputs_of_elements[] = {
    {"rates and packets", Origin::paper, "section 5.1"},
    {"hosts take no time per packet", Origin::paper, "section 5.3: near the highest achievable rate"},
};

struct ElementsContender {
    const char* name;
    const char* system;
};
constexpr ElementsContender elements_contenders[] = {
    {"SwitchML", "switchml"}, {"a server on each worker's host", "ps-n:rdma"}, {"ring (NCCL, Gloo)", "ring:rdma"}};

LineChart chart_of(std::int64_t rate, const std::vector<unsigned>& workers, const std::vector<sim::Report>& reports,
                   std::size_t first, double bound) {
    LineChart chart{.title = fmt::format("{} Gbit/s", rate / 1'000'000'000),
                    .x = {.label = "workers", .from = 0},
                    .y = {.label = "million elements per second", .from = 0},
                    .levels = {{.name = "limit of SwitchML's packets", .value = bound / million}}};
    for (const ElementsContender& contender : elements_contenders) {
        Line line{.name = contender.name};
        for (const unsigned count : workers) {
            line.x.push_back(count);
            line.y.push_back(elements_per_s(reports[first++]) / million);
        }
        chart.lines.push_back(std::move(line));
    }
    return chart;
}

Drawing draw_switchml_fig4(const Lab& lab) {
    const std::vector<unsigned> workers = lab.pick<std::vector<unsigned>>({4, 16}, {4, 8, 12, 16});
    std::vector<sim::Scenario> points;
    for (const std::int64_t rate : {slow, fast}) {
        for (const ElementsContender& contender : elements_contenders) {
            for (const unsigned count : workers) {
                points.push_back(tensor_at(fmt::format("star:{}", count), contender.system, rate));
                points.back().bytes = lab.pick<std::uint64_t>(2'000'000, 20'000'000);
            }
        }
    }
    const std::vector<sim::Report> reports = lab.run(points);
    Drawing drawing;
    for (const std::int64_t rate : {slow, fast}) {
        const double share = share_of_lanes(points.front(), switchml::paper_lanes);
        const double bound = static_cast<double>(rate) * share / bits_of_element;
        const LineChart chart = chart_of(rate, workers, reports, rate == slow ? 0 : reports.size() / 2, bound);
        const ElementRates rates{chart.lines[0].y, chart.lines[1].y, chart.lines[2].y};
        std::ranges::move(checks_of_elements(chart.title, rates, bound / million), std::back_inserter(drawing.checks));
        drawing.charts.emplace_back(chart);
    }
    return drawing;
}

Drawing draw_switchml_fig7(const Lab& lab) {
    const std::vector<double> sizes = lab.pick<std::vector<double>>({4}, {50, 100, 250});
    const std::vector<std::size_t> lanes{switchml::paper_lanes, switchml::paper_mtu_lanes};
    std::vector<sim::Scenario> points;
    for (const std::size_t count : lanes) {
        for (const double megabytes : sizes) {
            sim::Scenario point = tensor_at("star:8", "switchml", slow);
            point.switchml.lanes = static_cast<std::uint16_t>(count);
            point.bytes = static_cast<std::uint64_t>(megabytes * million);
            points.push_back(point);
        }
    }
    const std::vector<sim::Report> reports = lab.run(points);
    BarChart chart{.title = "Eight workers at 10 Gbit/s", .y = {.label = "time, ms"}};
    for (const double megabytes : sizes) chart.categories.push_back(number_text(megabytes) + " MB");
    for (std::size_t i = 0; i < lanes.size(); ++i) {
        Bars bars{.name = fmt::format("{} elements per packet", lanes[i])};
        for (std::size_t k = 0; k < sizes.size(); ++k) {
            bars.values.push_back(to_milliseconds(reports[i * sizes.size() + k].jobs.front().time()));
        }
        chart.bars.push_back(std::move(bars));
    }
    Drawing drawing;
    drawing.checks = checks_of_mtu(chart.bars[1].values.back() / chart.bars[0].values.back(),
                                   share_of_headers(lanes[0]), share_of_headers(lanes[1]));
    drawing.charts = {chart};
    return drawing;
}

// Processor seconds per element on this machine: scaling into a packet, and conversion of the result.
double seconds_an_element() {
    constexpr std::size_t elements = 1U << 20U;
    constexpr std::size_t lanes = switchml::paper_lanes;
    constexpr unsigned rounds = 9;
    std::vector<float> values(elements, 0.125F);
    std::vector<std::byte> packets(elements * sizeof(float));
    double least = 1;
    for (unsigned round = 0; round < rounds; ++round) {
        const auto begin = std::chrono::steady_clock::now();
        bool fits = true;
        for (std::size_t i = 0; i < elements; i += lanes) {
            std::byte* packet = &packets[i * sizeof(float)];
            fits &= numeric::quantise(&values[i], lanes, 1e8F, packet);
            numeric::dequantise(packet, lanes, 1e-8F, &values[i]);
        }
        const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
        if (!fits) throw Failed("an eighth does not fit into 32 bits");
        least = std::min(least, time.count() / elements);
    }
    return least;
}

Drawing draw_switchml_fig8(const Lab& lab) {
    sim::Scenario point = tensor_at("star:8", "switchml", slow);
    point.bytes = lab.pick<std::uint64_t>(4'000'000, 50'000'000);
    sim::Scenario halves = point;
    halves.switchml.halves = true;
    halves.switchml.lanes = 2 * switchml::paper_lanes;
    const std::vector<sim::Report> reports = lab.run({point, halves});
    const double whole_ms = to_milliseconds(reports[0].jobs.front().time());
    const double half_ms = to_milliseconds(reports[1].jobs.front().time());
    const double elements = static_cast<double>(point.bytes) / sizeof(float);
    const double conversion_ms = seconds_an_element() * elements * 1e3;

    Drawing drawing;
    drawing.checks = checks_of_conversion(std::max(conversion_ms, whole_ms) / whole_ms, half_ms / whole_ms);
    drawing.checks.push_back(
        notified("conversion on one core of this machine, relative to the transfer", conversion_ms / whole_ms));
    drawing.charts = {BarChart{.title = "Eight workers at 10 Gbit/s",
                               .y = {.label = "ms"},
                               .categories = {"32-bit elements", "16-bit elements", "conversion, one core"},
                               .bars = {{.name = "time", .values = {whole_ms, half_ms, conversion_ms}}}}};
    return drawing;
}

}  // namespace

const Figure switchml_fig4{
    .id = "switchml-fig4",
    .title = "Elements summed per second",
    .source = "SwitchML, section 5.3",
    .claim =
        "In every condition, SwitchML outperforms all other strategies, at a rate near the highest achievable and "
        "regardless of the number of workers (4 to 16). The colocated server approach reaches only half of SwitchML's "
        "performance.",
    .setup = "One tensor; hosts take no time per packet. Dedicated servers, one per worker, are not modelled.",
    .differences =
        "The paper's servers use SwitchML's packets of 180 bytes. Here, servers and the ring fill packets of 1,500 "
        "bytes, "
        "so headers take less: half of the line rate is then 0.77 of SwitchML. With SwitchML's packets it would be "
        "0.5.",
    .basis = Basis::arithmetic,
    .inputs = inputs_of_elements,
    .once = true,
    .draw = draw_switchml_fig4,
};

const Figure switchml_fig7{
    .id = "switchml-fig7",
    .title = "SwitchML with packets of an MTU",
    .source = "SwitchML, section 5.5",
    .claim =
        "A switch capable of processing MTU-sized packets (366 elements) would reduce from 28.9% to 3.4% the overhead "
        "of "
        "packet headers and further improve the time by 31.6%.",
    .setup = "The state machines with larger packets. Time includes preamble, checksum and gap; shares do not.",
    .basis = Basis::arithmetic,
    .inputs = inputs_of_elements,
    .once = true,
    .draw = draw_switchml_fig7,
};

const Figure switchml_fig8{
    .id = "switchml-fig8",
    .title = "Cost of conversion, and gain of shorter numbers",
    .source = "SwitchML, section 5.5",
    .claim = "The overheads of scaling and conversion are negligible; using float16 doubles the performance.",
    .setup =
        "Times of tensors are simulated; 16-bit elements are float16 on the wire. The conversion of this project is "
        "measured on one core of the machine that draws the figure. It overlaps with the transfer, so it adds no time "
        "if "
        "it is shorter.",
    .basis = Basis::arithmetic,
    .inputs = inputs_of_elements,
    .once = true,
    .draw = draw_switchml_fig8,
};

}  // namespace atp::figure
