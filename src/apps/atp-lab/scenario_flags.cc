// SPDX-License-Identifier: Apache-2.0
#include "apps/atp-lab/scenario_flags.h"

#include <cctype>
#include <string>
#include <string_view>

#include "apps/common/flags.h"
#include "sim/scenario_table.h"

namespace atp::apps {
namespace {

// As the texts of other flags, unless it begins with a value and a colon.
std::string capitalised(std::string text) {
    const std::string word = text.substr(0, text.find(' '));
    if (word.find(':') == std::string::npos)
        text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
    return text;
}

CLI::Option* add_flag(Flags& flags, const sim::ScenarioRow& row, sim::Scenario& scenario) {
    const auto read = [&row, &scenario](std::string_view text) { return row.read(text, scenario); };
    const std::string help = capitalised(row.help);
    if (row.placeholder.empty()) {
        return flags.call(
            row.flag, [read] { read(""); }, help);
    }
    if (!row.repeats) return flags.accepted(row.flag, row.placeholder, read, row.accepted, help);
    CLI::Option* option = flags.accepted_each(row.flag, row.placeholder, read, row.accepted, help);
    if (row.delimiter != 0) option->delimiter(row.delimiter);
    return option;
}

}  // namespace

void add_scenario_flags(Command& command, sim::Scenario& scenario) {
    using Group = sim::ScenarioRow::Group;
    for (const Group group : {Group::network, Group::jobs, Group::training, Group::hosts, Group::protocol,
                              Group::switchml, Group::faults}) {
        Flags flags(command, std::string(sim::heading_of(group)));
        for (const sim::ScenarioRow& row : sim::scenario_table()) {
            if (row.group != group) continue;
            CLI::Option* option = add_flag(flags, row, scenario);
            if (!row.excludes.empty()) option->excludes(command.get_option(row.excludes));
        }
    }
}

}  // namespace atp::apps
