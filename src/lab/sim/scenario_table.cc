// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/scenario_rows.h"

namespace atp::sim {

ScenarioRow alias(ScenarioRow::Group group, std::string flag, std::string excludes, std::string help,
                  void (*set)(Scenario& scenario)) {
    return {.group = group,
            .flag = std::move(flag),
            .help = std::move(help),
            .excludes = std::move(excludes),
            .read =
                [set](std::string_view /*text*/, Scenario& scenario) {
                    set(scenario);
                    return true;
                },
            .write = [](const Scenario& /*scenario*/) { return std::vector<std::string>(); }};
}

const std::vector<ScenarioRow>& scenario_table() {
    static const Rows table = [] {
        Rows rows;
        add_network_rows(rows);
        add_packet_rows(rows);
        add_job_rows(rows);
        add_protocol_rows(rows);
        add_fault_rows(rows);
        add_gradient_rows(rows);
        add_training_rows(rows);
        add_host_rows(rows);
        add_switchml_rows(rows);
        add_train_row(rows);
        add_owner_row(rows);
        add_list_row(rows);
        add_number_rows(rows);
        return rows;
    }();
    return table;
}

std::string_view heading_of(ScenarioRow::Group group) {
    using Group = ScenarioRow::Group;
    switch (group) {
        case Group::network: return "Network";
        case Group::jobs: return "Jobs";
        case Group::training: return "Training";
        case Group::hosts: return "Hosts and other traffic";
        case Group::protocol: return "Protocol";
        case Group::switchml: return "SwitchML";
        case Group::faults: return "Faults";
    }
    return "unknown";
}

std::string to_flags(const Scenario& scenario) {
    // The topology is written even if it is the default.
    std::string flags = fmt::format("--topology {}", to_string(scenario.topology));
    for (const ScenarioRow& row : scenario_table()) {
        std::vector<std::string> texts = row.write(scenario);
        if (row.flag == "--topology" || texts.empty()) continue;
        if (row.delimiter != 0) texts = {fmt::format("{}", fmt::join(texts, std::string_view(&row.delimiter, 1)))};
        for (const std::string& text : texts) flags += fmt::format(" {}{}{}", row.flag, text.empty() ? "" : " ", text);
    }
    return fmt::format("{} --seed {}", flags, scenario.seed);
}

std::optional<std::string> problem_of_values(const Scenario& scenario) {
    Scenario scratch;
    for (const ScenarioRow& row : scenario_table()) {
        for (const std::string& text : row.write(scenario)) {
            if (!row.read(text, scratch)) return fmt::format("{} {}: use {}", row.flag, text, row.accepted);
        }
    }
    return std::nullopt;
}

}  // namespace atp::sim
