// SPDX-License-Identifier: Apache-2.0
#include "client/switch_report.h"

#include <nlohmann/json.hpp>

namespace atp::client {
namespace {

using Json = nlohmann::json;

KernelFragments read_fragments(const Json& counters) {
    return {.claimed = counters.value("claimed", std::uint64_t{0}),
            .completed = counters.value("completed", std::uint64_t{0}),
            .fetched = counters.value("fetched", std::uint64_t{0})};
}

KernelReport read_kernel(const Json& shard) {
    const Json& kernel = shard["kernel"];
    KernelReport report{.aggregators = shard.value("aggregators", 0U),
                        .lanes = kernel.value("lanes", 0U),
                        .oversized = kernel.value("oversized", std::uint64_t{0}),
                        .damaged = kernel.value("damaged", std::uint64_t{0}),
                        .not_admitted = kernel.value("not_admitted", std::uint64_t{0}),
                        .passing_jobs = kernel.value("passing_jobs", Json::array()).size()};
    const Json interfaces = kernel.value("interfaces", Json::object());
    for (const auto& [name, mode] : interfaces.items()) {
        report.interfaces.emplace_back(name, mode.get<std::string>());
    }
    for (const Json& job : shard.value("jobs", Json::array())) {
        report.fragments.push_back(read_fragments(job.value("packets", Json::object())));
    }
    report.fragments.push_back(read_fragments(shard.value("packets", Json::object())));
    return report;
}

}  // namespace

std::optional<SwitchReport> read_switch_report(std::string_view text) {
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object() || !json.contains("shards") || !json["shards"].is_array()) return std::nullopt;
    try {
        SwitchReport report;
        report.parent = json.value("parent", std::string());
        report.parent_answers = json.value("parent_answers", false);
        for (const Json& shard : json["shards"]) {
            if (shard.contains("kernel")) {
                report.kernel = read_kernel(shard);
                continue;
            }
            const Json udp = shard.value("udp", Json::object());
            report.received += udp.value("received_packets", std::uint64_t{0});
            report.dropped_by_kernel += udp.value("dropped_by_kernel", std::uint64_t{0});
            report.refused_by_kernel += udp.value("refused_by_kernel", std::uint64_t{0});
            report.joins_refused += shard.value("joins_refused", std::uint64_t{0});
            ++report.threads;
        }
        if (json.contains("emulated_ports")) {
            report.emulates_ports = true;
            report.emulated_loss = json["emulated_ports"].value("loss", 0.0);
        }
        return report;
    } catch (const Json::exception&) {
        return std::nullopt;  // a field has another type
    }
}

}  // namespace atp::client
