// SPDX-License-Identifier: Apache-2.0
// The settings of a scenario. Each setting has one row: its flag, functions that parse and print it, its bounds, and a
// function that draws it for the swarm. The swarm draws in the order of the rows. A row that is inserted
// between two rows therefore changes all later draws of every seed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "random/random.h"
#include "sim/scenario.h"

namespace atp::sim {

struct ScenarioRow {
    // Headings of the help, in the order of the help.
    enum class Group : std::uint8_t { network, jobs, training, hosts, protocol, switchml, faults };

    Group group = Group::network;
    std::string flag{};         // with its dashes
    std::string placeholder{};  // of the value in the help; empty: the flag takes no value
    std::string accepted{};     // values that read() accepts, for error messages
    std::string help{};
    bool repeats = false;    // the flag may occur several times; each value is appended
    char delimiter = 0;      // between the values of one flag; 0: the flag takes one value
    std::string excludes{};  // a flag of an earlier row that cannot be given as well; empty: none

    // Sets the field from a text. Returns false if the text is not accepted.
    std::function<bool(std::string_view text, Scenario& scenario)> read{};
    // Prints the field: one text for each value, in the form that read() accepts. Prints nothing if the field has its
    // default, or if another row prints it.
    std::function<std::vector<std::string>(const Scenario& scenario)> write{};
    // Draws the field; may read the fields of earlier rows. nullptr: the swarm keeps the default.
    void (*draw)(Random& random, Scenario& scenario) = nullptr;
};

[[nodiscard]] const std::vector<ScenarioRow>& scenario_table();
[[nodiscard]] std::string_view heading_of(ScenarioRow::Group group);

// The flags of the settings that differ from the defaults. With them, a user can reduce a scenario drawn from a seed.
[[nodiscard]] std::string to_flags(const Scenario& scenario);

// Describes the first field with a value that its own flag does not accept; empty if there is none.
[[nodiscard]] std::optional<std::string> problem_of_values(const Scenario& scenario);

}  // namespace atp::sim
