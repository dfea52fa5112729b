// SPDX-License-Identifier: Apache-2.0
// Time of real hosts per packet and number: measured on this machine, not simulated.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "figure/figures/figures.h"

namespace atp::figure {
namespace {

// Steps of `atp-lab bench --ladder`: each method is added to those before it.
struct Ladder {
    std::vector<std::string> steps;
    std::vector<double> goodput;
};

Ladder ladder_of(const Lab& lab, const char* lanes) {
    const std::vector<std::string> effort = lab.pick<std::vector<std::string>>(
        {"--bytes", "1MB", "--rounds", "2", "--repeats", "1"}, {"--bytes", "4MB", "--rounds", "3", "--repeats", "3"});
    std::vector<std::string> command{"atp", "bench", "--ladder", "--network", "--lanes", lanes, "--json"};
    command.insert(command.end(), effort.begin(), effort.end());
    std::istringstream lines(lab.output_of(command));
    Ladder ladder;
    for (std::string line; std::getline(lines, line);) {
        const auto rung = nlohmann::json::parse(line);
        ladder.steps.push_back(rung.at("way"));
        ladder.goodput.push_back(rung.at("goodput_bps"));
    }
    return ladder;
}

constexpr Input inputs_of_fig19[] = {
    {"4 MB, packets of 180 and 306 bytes", Origin::paper, "appendix D.1"},
    {"processor and kernel", Origin::measured, "four ranks on a loopback, not two hosts"},
};

Drawing draw_fig19(const Lab& lab) {
    const Ladder small = ladder_of(lab, "32");
    const Ladder large = ladder_of(lab, "62");
    const auto gain = [&](const char* step) {
        const auto found = std::ranges::find(small.steps, step);
        if (found == small.steps.end()) throw Failed(std::string("the ladder has no step ") + step);
        const auto at = static_cast<std::size_t>(found - small.steps.begin());
        return small.goodput[at] / small.goodput[at - 1];
    };
    const double larger_packets = large.goodput.back() / small.goodput.back();
    const double all = large.goodput.back() / small.goodput.front();
    BarChart chart{.title = "All-reduce of four ranks on one machine",
                   .y = {.label = "goodput relative to plain sockets and 32 lanes"},
                   .categories = small.steps,
                   .bars = {{.name = "32 lanes"}, {.name = "62 lanes"}},
                   .levels = {{.name = "all methods of the paper together", .value = 6}}};
    for (std::size_t i = 0; i < small.steps.size(); ++i) {
        chart.bars[0].values.push_back(small.goodput[i] / small.goodput[0]);
        chart.bars[1].values.push_back(large.goodput[i] / small.goodput[0]);
    }
    Drawing drawing;
    drawing.checks = {number(6, other_hardware, "all methods together, relative to plain sockets", all),
                      number(3, other_hardware, "segmentation by the kernel (GSO; paper: TSO)", gain("+gso")),
                      number(1.47, other_hardware, "coalescing by the kernel (GRO; paper: MP-QP)", gain("+gro")),
                      number(1.3, other_hardware, "62 lanes relative to 32 (paper: two passes)", larger_packets)};
    drawing.charts = {chart};
    return drawing;
}

}  // namespace

const Figure fig19{
    .id = "fig19",
    .title = "Gain of each method of network I/O",
    .source = "ATP, appendix D.1",
    .claim =
        "TSO increases performance by 3X, MP-QP by a further 1.47X, and packets twice as long (two-pass) by a final "
        "1.3X. "
        "Overall, they provide a 6X improvement.",
    .setup =
        "Real sockets on this machine: batches of system calls, segmentation by the kernel, coalescing by the kernel, "
        "and "
        "threads; each bar adds one method to those before it. A step is compared with the paper's of the same "
        "purpose.",
    .differences =
        "A loopback hands on a segment of many packets as one, which saves more than a network card does. With a "
        "loopback that divides them, all methods together bring 5.9 "
        "([experiment](experiments.md#a-loopback-that-divides)).",
    .basis = Basis::sockets,
    .inputs = inputs_of_fig19,
    .draw = draw_fig19,
};

}  // namespace atp::figure
