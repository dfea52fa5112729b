// SPDX-License-Identifier: Apache-2.0
// Checks that a simulated figure and the figure on real packets with the same id have in common.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "figure/chart.h"
#include "figure/judgement.h"

namespace atp::figure {

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
