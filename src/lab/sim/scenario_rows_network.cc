// SPDX-License-Identifier: Apache-2.0
// Rows for topology, where servers and sums are, links, hosts, and the interval of the report.
#include "sim/scenario_rows.h"
#include "sim/scenario_text.h"

namespace atp::sim {
namespace {

using std::chrono::microseconds;
using enum ScenarioRow::Group;

constexpr std::array<Word<ServerPlacement>, 4> server_words{{{"switch", ServerPlacement::on_switch},
                                                             {"dedicated", ServerPlacement::dedicated},
                                                             {"shared", ServerPlacement::shared},
                                                             {"colocated", ServerPlacement::colocated}}};
constexpr std::array<Word<Aggregation>, 3> aggregation_words{
    {{"everywhere", Aggregation::everywhere}, {"racks", Aggregation::racks}, {"nowhere", Aggregation::nowhere}}};
constexpr std::array<Word<Placement>, 2> placement_words{
    {{"shared", Placement::shared}, {"separate", Placement::separate}}};

TextForm<TopologySpec> topology() {
    return {.placeholder = "SHAPE",
            .accepted = std::string(topology_forms),
            .parse = parse_topology,
            .print = [](const TopologySpec& spec) { return to_string(spec); }};
}

void draw_topology(Random& random, Scenario& s) {
    using Shape = TopologySpec::Shape;
    static constexpr std::array shapes{Shape::star,  Shape::star,     Shape::racks,
                                       Shape::racks, Shape::dumbbell, Shape::fig9};
    s.topology.shape = random.pick(shapes);
    const bool large = random.chance(0.04);
    switch (s.topology.shape) {
        case Shape::star: s.topology = {Shape::star, large ? 32 : between(random, 1, 8), 1}; break;
        case Shape::racks:
            s.topology = {Shape::racks, large ? 8 : between(random, 1, 4), between(random, 1, large ? 8 : 4)};
            break;
        case Shape::dumbbell: s.topology = {Shape::dumbbell, between(random, 1, 4), between(random, 1, 4)}; break;
        case Shape::fig9: s.topology = {Shape::fig9, 3, 2}; break;
    }
}

void draw_server(Random& random, Scenario& s) {
    static constexpr std::array servers{ServerPlacement::on_switch, ServerPlacement::on_switch,
                                        ServerPlacement::dedicated, ServerPlacement::colocated};
    s.server = random.pick(servers);
}

void draw_aggregation(Random& random, Scenario& s) {
    if (random.chance(0.05)) s.aggregation = Aggregation::racks;
    if (random.chance(0.05)) s.aggregation = Aggregation::nowhere;
}

void draw_rate(Random& random, Scenario& s) {
    static constexpr std::array<std::int64_t, 3> rates{1'000'000'000, 10'000'000'000, 100'000'000'000};
    s.rate_bits_per_s = random.pick(rates);
}

void draw_ecn(Random& random, Scenario& s) {
    s.ecn_bytes = random.chance(0.2) ? 0 : random.between(500, s.queue_bytes);
}

// The word "papers" selects `papers`, the cost that was derived from the ATP paper.
TextForm<HostCost> cost(const HostCost& papers) {
    const auto parse = [papers](std::string_view text) {
        return text == "papers" ? std::optional(papers) : parse_host_cost(text);
    };
    return {
        .placeholder = "COST", .accepted = std::string(cost_forms), .parse = parse, .print = [](const HostCost& value) {
            return to_string(value);
        }};
}

TextForm<BackgroundSpec> flow() {
    return {
        .placeholder = "FLOW", .accepted = std::string(background_forms), .parse = parse_background, .print = to_flag};
}

}  // namespace

void add_network_rows(Rows& rows) {
    rows.push_back(
        row<&Scenario::topology>(network, "--topology", topology(), "switches and hosts [star:4]", draw_topology));
    rows.push_back(row<&Scenario::server>(
        network, "--server", words("PLACE", server_words),
        "host of each job's server. switch: that of the last switch; dedicated: one for each job; shared: one for all "
        "jobs; colocated: that of a worker [switch]",
        draw_server));
    rows.push_back(row<&Scenario::aggregation>(
        network, "--aggregation", words("WHERE", aggregation_words),
        "which switches aggregate; racks: each for its own rack only [everywhere]", draw_aggregation));
    rows.push_back(alias(network, "--no-aggregation", "--aggregation",
                         "switches only forward, as with --aggregation nowhere",
                         [](Scenario& s) { s.aggregation = Aggregation::nowhere; }));
    rows.push_back(row<&Scenario::placement>(
        network, "--placement", words("HOW", placement_words),
        "shared: each host runs one worker of every job; separate: each job has its own hosts [shared]",
        [](Random& random, Scenario& s) {
            if (random.chance(0.3)) s.placement = Placement::separate;
        }));
    rows.push_back(
        row<&Scenario::rate_bits_per_s>(network, "--rate", rate(), "rate of every link [100Gbps]", draw_rate));
    rows.push_back(row<&Scenario::uplink_bits_per_s>(network, "--uplink", rate(),
                                                     "rate of links between switches [that of --rate]"));
    rows.push_back(row<&Scenario::burst_bytes>(
        network, "--burst", size(), "bytes that a link sends at once after a pause, as a token bucket does [0]"));
    rows.push_back(row<&Scenario::delay>(
        network, "--delay", duration(), "propagation delay of every link [1us]",
        [](Random& random, Scenario& s) { s.delay = between(random, Duration(100), microseconds(20)); }));
    rows.push_back(row<&Scenario::queue_bytes>(
        network, "--queue", size(), "queue of every port of a switch [2MB]",
        [](Random& random, Scenario& s) { s.queue_bytes = random.between(6'000, 400'000); }));
    rows.push_back(row<&Scenario::ecn_bytes>(network, "--ecn", size(),
                                             "length from which a queue marks packets; 0: never [200kB]", draw_ecn));
    rows.push_back(row<&Scenario::paths>(network, "--spray", number<unsigned>(1, 64),
                                         "paths between two switches; each packet takes a random one [1]",
                                         [](Random& random, Scenario& s) {
                                             if (random.chance(0.3)) s.paths = between(random, 2, 4);
                                         }));
    rows.push_back(row<&Scenario::path_skew>(
        network, "--spray-skew", duration(), "additional delay of each further path [5us]",
        [](Random& random, Scenario& s) { s.path_skew = between(random, Duration(0), microseconds(20)); }));
    rows.push_back(row<&Scenario::overhead_bytes>(
        network, "--overhead", number<std::uint32_t>(0, 1000),
        "bytes on the wire beside the UDP payload: Ethernet, IP, UDP, preamble, FCS, gap [66]"));
}

void add_host_rows(Rows& rows) {
    rows.push_back(row<&Scenario::host_cost>(
        hosts, "--host-cost", cost(cost_of_papers),
        "time of a host for each packet of ATP or SwitchML, and its rate of copying; counts if longer than the time "
        "on the wire; papers: 31ns and 64.7Gbps [0]"));
    rows.push_back(row<&Scenario::tcp_cost>(
        hosts, "--tcp-cost", cost(tcp_cost_of_papers),
        "time of a host for each segment of tcp, and its rate of copying; papers: 45Gbps [0]"));
    rows.push_back(row<&Scenario::rdma_cost>(
        hosts, "--rdma-cost", cost(rdma_cost_of_papers),
        "time of a host for each segment of rdma, and its rate of copying; papers: 64.7Gbps [0]"));
    rows.push_back(
        row<&Scenario::background>(hosts, "--background", flow(),
                                   "traffic of another application; without an end it lasts until all jobs are done"));
    rows.push_back(
        row<&Scenario::sample>(hosts, "--sample", interval(),
                               "interval of the series in the JSON report: what jobs, flows and links carried"));
}

}  // namespace atp::sim
