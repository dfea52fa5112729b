// SPDX-License-Identifier: Apache-2.0
// A TCP flow on the uplink of a worker's host.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>

#include "figure/figures/claims.h"
#include "figure/real/real_figures.h"
#include "figure/trial.h"

namespace atp::figure {
namespace {

constexpr double bytes_of_tensor = 4e6;
constexpr double sample_seconds = 0.5;
constexpr double payload_of_tcp = 1448.0 / 1514;  // of a full frame with timestamps
constexpr double payload_of_udp = 1472.0 / 1514;

// Six workers and the host that receives the flow, at 700 Mbit/s together.
std::vector<std::string> share_command(const Lab& lab, std::vector<std::string> more) {
    std::vector<std::string> words{"bench/cluster/share",
                                   "--json",
                                   "--workers",
                                   "6",
                                   "--rate",
                                   "100mbit",
                                   "--bytes",
                                   fmt::format("{:.0f}", bytes_of_tensor),
                                   "--operations",
                                   lab.pick("8", "20")};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

std::vector<std::string> marked(const Lab& lab) {
    return share_command(lab, {"--switch", "xdp", "--ecn", "--switch-flags=--link-rate 100Mbit"});
}

std::vector<std::string> served_by_hosts(const Lab& lab) { return share_command(lab, {"--switch", "none"}); }

// The goodput of the job beside the flow, and the flow's, relative to the payload that the link carries.
double goodput_of_both(const Outcome& outcome) {
    const auto seconds = outcome.report().at("seconds").get<std::vector<double>>();
    const double whole = std::accumulate(seconds.begin(), seconds.end(), 0.0);
    const double job_bps = bytes_of_tensor * 8 * static_cast<double>(seconds.size()) / whole;
    const double flow_bps = outcome.number("/flow_share") * outcome.number("/rate_bps") * payload_of_tcp;
    return (job_bps + flow_bps) / (outcome.number("/rate_bps") * payload_of_udp);
}

// The mean of each half second of a series of bench/cluster/share.
Line shares_over_time(const Outcome& outcome, const char* series, const char* name) {
    Line line{.name = name, .markers = false};
    double sum = 0;
    unsigned count = 0;
    double begin = 0;
    for (const auto& [at, share] : outcome.report().at("series").at(series).get<std::vector<std::array<double, 2>>>()) {
        sum += share;
        ++count;
        if (at - begin < sample_seconds) continue;
        line.x.push_back(at);
        line.y.push_back(std::max(0.0, sum / count));  // counters of two links are read one after the other
        begin = at;
        sum = count = 0;
    }
    return line;
}

LineChart chart_over_time(const char* title, const char* job, const Outcome& outcome) {
    return {.title = title,
            .x = {.label = "time, s", .from = 0},
            .y = {.label = "share of the bytes of the uplink", .from = 0},
            .lines = {shares_over_time(outcome, "job", job), shares_over_time(outcome, "TCP", "background (TCP)")},
            .levels = {{.name = "fair share", .value = 0.5}}};
}

// Without the first quarter, in which the flow and the job find their rates.
std::vector<double> settled_shares(const Outcome& outcome, const Line& line) {
    const double begin = outcome.number("/together/0");
    const double end = outcome.number("/together/1");
    std::vector<double> samples;
    for (std::size_t i = 0; i < line.x.size(); ++i) {
        const bool within = line.x[i] - sample_seconds > begin + (end - begin) / 4 && line.x[i] <= end;
        if (within) samples.push_back(line.y[i]);
    }
    return samples;
}

constexpr Input inputs_beside_flow[] = {
    {"six workers, a flow of line rate on an uplink, tensors of 4 MB", Origin::paper, "section 5.5"},
    {"marks above 0.98 of the rate of a link", Origin::measured, "as the product"},
};

Drawing draw_real_fig16(const Lab& lab) {
    const Outcome outcome = measured_once(lab, marked(lab));
    const LineChart chart = chart_over_time("Microbenchmark, which always sends", "ATP", outcome);
    Drawing drawing;
    drawing.checks = checks_beside_flow(outcome.number("/job_speed"), goodput_of_both(outcome),
                                        settled_shares(outcome, chart.lines.front()));
    drawing.checks.push_back(
        notified("bytes on the uplink with both, relative to the line rate", outcome.number("/sum")));
    drawing.checks.push_back(notified("bytes of the flow, relative to the line rate", outcome.number("/flow_share")));
    drawing.charts = {chart};
    return drawing;
}

Drawing draw_real_draft_fig12(const Lab& lab) {
    const Outcome atp = measured_once(lab, marked(lab));
    const Outcome servers = measured_once(lab, served_by_hosts(lab));
    Drawing drawing;
    drawing.checks = checks_of_servers_beside_flow("microbenchmark", goodput_of_both(atp), goodput_of_both(servers));
    drawing.checks.push_back(
        notified("bytes on the uplink with ATP and flow, relative to the line rate", atp.number("/sum")));
    drawing.checks.push_back(
        notified("bytes on the uplink with servers and flow, relative to the line rate", servers.number("/sum")));
    drawing.charts = {chart_over_time("Microbenchmark, ATP", "ATP", atp),
                      chart_over_time("Microbenchmark, a server on each worker's host", "servers", servers)};
    return drawing;
}

}  // namespace

const Figure real_fig16{
    .id = "fig16",
    .setup =
        "The switch adds in the kernel, and marks what leaves its ports. The flow is TCP that answers marks. Job and "
        "flow run alone, then both together. Goodputs are relative to the payload of full frames at line rate, 1,472 "
        "of 1,514 bytes. VGG16 is not measured. The simulator has no such marks.",
    .differences =
        "The flow's TCP is the system's, here BBR, which leaves more to the job than CUBIC and Reno do: beside those, "
        "or "
        "beside another job of ATP, the job keeps about half ([experiment](experiments.md#another-flow)).",
    .basis = Basis::kernel,
    .inputs = inputs_beside_flow,
    .seconds = 100,
    .draw = draw_real_fig16,
};

const Figure real_draft_fig12{
    .id = "draft-fig12",
    .setup =
        "As fig16. The peer is a server on each worker's host over UDP, without a switch and without marks, and the "
        "flow's TCP is that of the system. It represents BytePS: RDMA is not available.",
    .differences =
        "Each host also sends results, so the uplink carries 1.67 times the bytes of the tensor: it is full (last "
        "row), but this is not goodput.",
    .basis = Basis::kernel,
    .inputs = inputs_beside_flow,
    .seconds = 200,
    .draw = draw_real_draft_fig12,
};

}  // namespace atp::figure
