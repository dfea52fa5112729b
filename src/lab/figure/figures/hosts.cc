// SPDX-License-Identifier: Apache-2.0
// Time of real hosts per packet and number: measured on this machine, not simulated.
#include <nlohmann/json.hpp>
#include <sstream>

#include "figure/figures/figures.h"

namespace atp::figure {
namespace {

Drawing draw_fig19(const Lab& lab) {
    const std::vector<std::string> effort = lab.pick<std::vector<std::string>>(
        {"--bytes", "1MB", "--rounds", "2", "--repeats", "1"}, {"--bytes", "4MB", "--rounds", "3", "--repeats", "5"});
    std::vector<std::string> command{"atp", "bench", "--ladder", "--network", "--lanes", "62", "--json"};
    command.insert(command.end(), effort.begin(), effort.end());
    std::istringstream lines(lab.output_of(command));

    BarChart chart{.title = "All-reduce of four ranks on one machine, 62 lanes",
                   .y = {.label = "goodput relative to plain sockets"},
                   .bars = {{.name = "measured"}},
                   .levels = {{.name = "all methods of the paper together", .value = 6}}};
    for (std::string line; std::getline(lines, line);) {
        const auto rung = nlohmann::json::parse(line);
        chart.categories.push_back(rung.at("way"));
        chart.bars.front().values.push_back(rung.at("times_plain"));
    }
    const std::vector<double>& times = chart.bars.front().values;
    Drawing drawing;
    drawing.checks = {at_least(6, "all methods together, relative to plain sockets", times.back())};
    for (std::size_t i = 1; i < times.size(); ++i) {
        drawing.checks.push_back(
            notified(chart.categories[i] + ", relative to the previous method", times[i] / times[i - 1]));
    }
    drawing.charts = {chart};
    return drawing;
}

}  // namespace

const Figure fig19{
    .id = "fig19",
    .title = "Gain of each method of network I/O",
    .source = "ATP, appendix D.1",
    .claim =
        "Segmentation by the network card is 3 times faster, multi-packet queue pairs are a further 1.47 times "
        "faster, and larger packets a further 1.3 times. All methods together are 6 times faster.",
    .setup =
        "Real sockets on this machine. The methods are batches of system calls, segmentation by the kernel, "
        "coalescing by the kernel, and threads; each bar adds one method to those before it. The paper uses "
        "different hardware. The comparison is therefore limited to the claim that several methods together make "
        "small packets fast.",
    .draw = draw_fig19,
};

}  // namespace atp::figure
