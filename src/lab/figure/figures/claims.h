// SPDX-License-Identifier: Apache-2.0
// Checks of claims that a simulated figure shares with that on real packets.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "figure/chart.h"
#include "figure/judgement.h"

namespace atp::figure {

// The speeds of two jobs side by side, in one unit.
struct PairSpeeds {
    double first = 0;
    double second = 0;

    [[nodiscard]] double slower() const { return std::min(first, second); }
    [[nodiscard]] double faster() const { return std::max(first, second); }
};
// Of the first two bars of a category.
[[nodiscard]] PairSpeeds pair_of(const BarChart& chart, std::size_t category);

// ATP, servers on all hosts, and a ring. dumbbell.cc
[[nodiscard]] std::vector<Check> checks_of_fig12(const PairSpeeds& atp, const PairSpeeds& servers,
                                                 const std::string& servers_name, const PairSpeeds& ring,
                                                 const std::string& ring_name);

// Relative to alone: jobs of 3 and 3 workers, of 5 and 2, and VGG16 and ResNet50. jobs.cc
[[nodiscard]] std::vector<Check> checks_of_fig20(const std::array<PairSpeeds, 3>& pairs, double two_to_five);

// The first category is ATP, and the two others are its peers. jobs.cc
[[nodiscard]] std::vector<Check> checks_of_draft_fig10(const BarChart& same, const BarChart& mixed);

struct TableRow {
    const char* model;
    double ideal;  // images/s of eight GPUs
    double nccl;
    double switchml;
};
inline constexpr TableRow rows_of_table1[] = {{"VGG16", 1180, 207, 454}, {"ResNet50", 1838, 911, 1412}};

// Speeds relative to no communication. models.cc
[[nodiscard]] std::vector<Check> checks_of_table1(const TableRow& row, double switchml, double ring,
                                                  const std::string& ring_name);

// fig10 and draft-fig7 (loss.cc): throughputs relative to no loss, first ATP's line, then SwitchML's.
inline constexpr double paper_lead = 1.34;
[[nodiscard]] std::vector<double> leads_of(const LineChart& chart);
// With losses of 0.1 % and more, of which the text says that they lower the throughput.
[[nodiscard]] Check degrades_less(const std::string& what, const std::vector<double>& losses,
                                  const std::vector<double>& leads);

// draft-fig8 (forwarding.cc): throughputs over the share forwarded, from none to all.
[[nodiscard]] std::vector<Check> checks_of_forwarding(const std::vector<double>& vgg,
                                                      const std::vector<double>& resnet);

// fig15 (congestion.cc): speed of the training, and samples of the goodput from its start to its end.
struct ControlledRun {
    double speed = 0;
    std::vector<double> goodputs{};
};
[[nodiscard]] std::vector<Check> checks_of_control(const ControlledRun& with, const ControlledRun& without);

// fig13a (sharing.cc): the dynamic line, then the one of static parts, over shares from 1 to a quarter.
[[nodiscard]] std::vector<Check> checks_of_parts(const LineChart& chart, const std::vector<double>& shares);
// fig13b: packets that the servers add, one line for each job. A paper's millisecond takes so much of the x axis.
[[nodiscard]] std::vector<Check> checks_of_settling(const std::vector<Line>& jobs, double millisecond);
// fig13c: packets that the switch adds, one line for each job.
[[nodiscard]] Check check_of_off_phases(const std::vector<Line>& jobs);

// fig3 (phases.cc): samples of the goodput, and times of an iteration.
struct PhaseTimes {
    double iteration = 0;
    double sending = 0;  // of all gradients, at the goodput of one tensor
    double computing = 0;
};
[[nodiscard]] std::vector<Check> checks_of_phases(const std::vector<double>& goodputs, const PhaseTimes& times);

// Bytes into the server: of ATP, with aggregation within racks only, and without. racks.cc
[[nodiscard]] std::vector<Check> checks_of_fig9(const std::vector<double>& bytes);

// claims.cc
// Of SwitchML's pool, over the number of slots. `product`: slots that fill the bandwidth-delay product.
[[nodiscard]] std::vector<Check> checks_of_pool(const Line& time, const Line& round_trip, double product);

// Elements per second of one number of workers after the other.
struct ElementRates {
    std::vector<double> switchml;
    std::vector<double> colocated;  // a server on each worker's host
    std::vector<double> ring;
};
// `bound`: of SwitchML's packets, in the unit of the rates.
[[nodiscard]] std::vector<Check> checks_of_elements(const std::string& where, const ElementRates& rates, double bound);

// Times relative to no loss, at 0.01, 0.1 and 1 %. `ring`: what represents Gloo.
[[nodiscard]] std::vector<Check> checks_of_losses(std::span<const double> switchml, std::string_view ring,
                                                  std::span<const double> times_of_ring);

// `time`: of packets of an MTU, relative to 32 elements. Shares of headers: of 32 elements, and of an MTU.
[[nodiscard]] std::vector<Check> checks_of_mtu(double time, double short_headers, double long_headers);

// Relative to what converts nothing, and to 32 bits.
[[nodiscard]] std::vector<Check> checks_of_conversion(double converting, double halves);

// A microbenchmark beside a flow: relative to its goodput alone, with the flow's relative to the link, and over time.
[[nodiscard]] std::vector<Check> checks_beside_flow(double kept, double sum, std::span<const double> samples);
[[nodiscard]] std::vector<Check> checks_of_servers_beside_flow(std::string_view work, double with_atp,
                                                               double with_servers);

}  // namespace atp::figure
