// SPDX-License-Identifier: Apache-2.0
#include "figure/figures/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace atp::figure {

std::vector<Check> checks_of_pool(const Line& time, const Line& round_trip, double product) {
    const auto filled = std::ranges::lower_bound(time.x, 2 * product) - time.x.begin();
    return {knee(product,
                 "fewest slots within 5 % of the shortest time (stated: those that fill the bandwidth-delay product)",
                 time.x, time.y),
            flat("longest time with at least twice the product, relative to the shortest time",
                 std::span(time.y).subspan(static_cast<std::size_t>(filled))),
            order("queueing: round trip with the most slots, relative to the fewest",
                  std::array{round_trip.y.back(), round_trip.y.front()}),
            notified("time with the fewest slots, relative to the shortest time",
                     time.y.front() / *std::ranges::min_element(time.y))};
}

std::vector<Check> checks_of_elements(const std::string& where, const ElementRates& rates, double bound) {
    const double colocated = rates.colocated.back() / rates.switchml.back();
    double lead = 1 / colocated;
    for (std::size_t i = 0; i < rates.switchml.size(); ++i) {
        lead = std::min(lead, rates.switchml[i] / std::max(rates.colocated[i], rates.ring[i]));
    }
    return {
        flat(where + ": SwitchML over the workers, fastest relative to slowest", rates.switchml),
        equal(1, where + ": SwitchML, relative to the limit of its packets", std::ranges::min(rates.switchml) / bound),
        order(where + ": SwitchML relative to the fastest other, minimum", std::array{lead, 1.0}),
        number(0.5, same_ratio, where + ": servers on the workers' hosts relative to SwitchML", colocated)};
}

std::vector<Check> checks_of_losses(std::span<const double> switchml, std::string_view ring,
                                    std::span<const double> times_of_ring) {
    const auto slows_more = [&](std::string_view loss, std::size_t i) {
        return order(fmt::format("at {}, {} slows down more than SwitchML", loss, ring),
                     std::array{times_of_ring[i], switchml[i]});
    };
    return {equal(1, "SwitchML at 0.01 %: time relative to no loss", switchml[0]),
            equal(1, fmt::format("{} at 0.01 %: time relative to no loss", ring), times_of_ring[0]),
            slows_more("0.1 %", 1), slows_more("1 %", 2)};
}

std::vector<Check> checks_of_mtu(double time, double short_headers, double long_headers) {
    return {number(1 - 0.316, same_ratio, "time with packets of an MTU, relative to 32 elements", time),
            number(0.289, same_ratio, "share of headers with 32 elements", short_headers),
            number(0.034, same_ratio, "share of headers with 366 elements", long_headers)};
}

std::vector<Check> checks_of_conversion(double converting, double halves) {
    return {equal(1, "time with conversion beside the transfer, relative to the transfer", converting),
            number(0.5, same_ratio, "time with 16-bit elements, relative to 32 bits", halves)};
}

std::vector<Check> checks_beside_flow(double kept, double sum, std::span<const double> samples) {
    return {number(0.5, same_ratio, "the microbenchmark's goodput with the flow, relative to its goodput alone", kept),
            equal(1, "goodput of both, relative to the line rate", sum),
            stable("variation of the microbenchmark's goodput beside the flow", samples)};
}

std::vector<Check> checks_of_servers_beside_flow(std::string_view work, double with_atp, double with_servers) {
    return {equal(1, fmt::format("{}: goodput of ATP and flow, relative to the line rate", work), with_atp),
            order(fmt::format("{}: BytePS and flow are below the line rate, by more than the band of \"close\"", work),
                  std::array{1.0, with_servers}, 1 + equality)};
}

}  // namespace atp::figure
