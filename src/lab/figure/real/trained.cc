// SPDX-License-Identifier: Apache-2.0
#include "figure/real/trained.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace atp::figure {
namespace {

constexpr double share_of_server = 0.6;
constexpr double mega = 1e6;
constexpr double idle_share = 0.01;  // of the link

}  // namespace

Trial trained_trial(std::string_view topology, std::int64_t rate_bits_per_s, const Trained& trained) {
    Trial trial{.network = training(topology, rate_bits_per_s, {std::string(trained.model)}, trained.batch),
                .systems = {"atp"}};
    trial.network.scale = trained.scale;
    trial.network.iterations = trained.iterations;
    return trial;
}

void move_servers(Trial& trial, unsigned servers) {
    const double rate = share_of_server * static_cast<double>(trial.network.rate_bits_per_s);
    trial.network.server = sim::ServerPlacement::dedicated;
    trial.network.host_cost.bits_per_s = static_cast<std::int64_t>(rate);
    for (std::string word : {"--server", "host", "--server-rate"}) trial.flags.push_back(std::move(word));
    trial.flags.push_back(fmt::format("{:.0f}bit", rate * servers));
}

void mark_at_servers(Trial& trial, std::uint64_t bytes) {
    trial.network.ecn_bytes = bytes;
    trial.flags.push_back(fmt::format("--fault=mark={}bit/{}@server:down", trial.network.host_cost.bits_per_s, bytes));
}

Line received_by_first_host(std::string name, const Outcome& outcome, std::string_view system) {
    Line line{.name = std::move(name), .markers = false};
    const double idle = idle_share * outcome.number("/rate_bps") / mega;
    const nlohmann::json& series = outcome.of_round(system, "series");
    double begin = 0;
    std::size_t last = 0;
    for (std::size_t i = 1; i < series.size(); ++i) {
        const auto before = series.at(i - 1).get<std::array<double, 3>>();
        const auto after = series.at(i).get<std::array<double, 3>>();
        const double goodput = (after[2] - before[2]) * 8 / (after[0] - before[0]) / mega;
        if (line.x.empty() && goodput <= idle) continue;
        if (line.x.empty()) begin = before[0];
        line.x.push_back(after[0] - begin);
        line.y.push_back(goodput > idle ? goodput : 0);
        if (goodput > idle) last = line.x.size();
    }
    line.x.resize(last);
    line.y.resize(last);
    return line;
}

}  // namespace atp::figure
