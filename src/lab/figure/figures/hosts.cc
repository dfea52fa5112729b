// SPDX-License-Identifier: Apache-2.0
// Time of real hosts per packet and number: measured on this machine, not simulated.
#include <nlohmann/json.hpp>
#include <sstream>

#include "figure/figures/figures.h"
#include "figure/figures/points.h"

namespace atp::figure {
namespace {

Drawing draw_fig19(const Lab& lab) {
    const std::vector<std::string> effort = lab.pick<std::vector<std::string>>(
        {"--bytes", "1MB", "--rounds", "2", "--repeats", "1"}, {"--bytes", "4MB", "--rounds", "3", "--repeats", "5"});
    std::vector<std::string> command{"atp", "bench", "--ladder", "--lanes", "62", "--json"};
    command.insert(command.end(), effort.begin(), effort.end());
    std::istringstream lines(lab.output_of(command));

    BarChart chart{.title = "All-reduce of four ranks on one machine, 62 lanes",
                   .y = {.label = "goodput, times plain sockets"},
                   .bars = {{.name = "ours"}},
                   .levels = {{.name = "all of the paper's together", .value = 6}}};
    for (std::string line; std::getline(lines, line);) {
        const auto rung = nlohmann::json::parse(line);
        chart.categories.push_back(rung.at("way"));
        chart.bars.front().values.push_back(rung.at("times_plain"));
    }
    const std::vector<double>& times = chart.bars.front().values;
    Drawing drawing;
    drawing.checks = {at_least(6, "everything, times plain sockets", times.back())};
    for (std::size_t i = 1; i < times.size(); ++i) {
        drawing.checks.push_back(notified(chart.categories[i] + ", times the one before", times[i] / times[i - 1]));
    }
    drawing.charts = {chart};
    return drawing;
}

}  // namespace

const Figure fig19{
    .id = "fig19",
    .title = "What each way of talking to the network brings",
    .source = "ATP, appendix D.1",
    .claim =
        "Segments cut by the network card bring 3 times, multi-packet queue pairs 1.47 times more, larger packets 1.3 "
        "times more: 6 times all together.",
    .setup =
        "Real sockets on this machine: batches of system calls, segmentation and coalescing by the kernel, threads, "
        "each added to those before. The paper's hardware is another; what is compared is that the sum of small "
        "measures is what makes small packets fast.",
    .draw = draw_fig19,
};

}  // namespace atp::figure
