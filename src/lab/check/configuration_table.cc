// SPDX-License-Identifier: Apache-2.0
#include "check/configuration_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace atp::check {
namespace {

using Number = unsigned long;

template <auto member>
void set(Configuration& configuration, Number number) {
    configuration.*member = static_cast<std::remove_reference_t<decltype(configuration.*member)>>(number);
}
template <Protocol protocol>
void set_protocol(Configuration& configuration, Number /*number*/) {
    configuration.protocol = protocol;
}

struct Setting {
    std::string_view name;
    void (*set)(Configuration&, Number);
};

// Without a number, a setting is 1.
constexpr auto settings = std::to_array<Setting>({
    {"switchml", set_protocol<Protocol::switchml>},
    {"joining", set_protocol<Protocol::joining>},
    {"host", set_protocol<Protocol::host>},
    {"formation", set_protocol<Protocol::formation>},
    {"jobs", set<&Configuration::jobs>},
    {"same_number", set<&Configuration::same_number>},
    {"aggregators", set<&Configuration::aggregators>},
    {"base_slots", set<&Configuration::base_slots>},
    {"ranks_each", set<&Configuration::ranks_each>},
    {"int16_lanes", set<&Configuration::int16_lanes>},
    {"bounded", set<&Configuration::bounded>},
    {"plain", set<&Configuration::plain_tensors>},
    {"owned", set<&Configuration::owned_tensors>},
    {"gathered", set<&Configuration::gathered_tensors>},
    {"one_owner", set<&Configuration::one_owner>},
    {"first_seq", set<&Configuration::first_seq>},
    {"racks_share_switch", set<&Configuration::racks_share_switch>},
    {"asks_path", set<&Configuration::asks_path>},
    {"switch_in_path", set<&Configuration::switch_in_path>},
    {"ack_lists", set<&Configuration::ack_lists>},
    {"pipelines", set<&Configuration::pipelines>},
    {"earlier_incarnation", set<&Configuration::earlier_incarnation>},
    {"stale_packets", set<&Configuration::stale_packets>},
    {"slices", set<&Configuration::slices>},
    {"strangers", set<&Configuration::strangers>},
    {"mismatched", set<&Configuration::mismatched_worker>},
    {"marked", set<&Configuration::marked_worker>},
    {"other_hosts", set<&Configuration::other_hosts>},
    {"killed", set<&Configuration::killed>},
    {"differs_in_world", set<&Configuration::differs_in_world>},
    {"hold_ticks", set<&Configuration::hold_ticks>},
    {"hosts_report", set<&Configuration::hosts_report>},
    {"switches_crash", set<&Configuration::switches_crash>},
    {"names_root", set<&Configuration::names_root>},
    {"leaver", set<&Configuration::leaver>},
});

constexpr std::array<std::string_view, 8> value_names{
    "small",           "too_large", "not_finite", "saturating", "saturating_and_too_large",
    "owner_too_large", "one_large", "wide_sums"};
constexpr std::array<std::string_view, fault_count> fault_names{"losses",   "duplicates", "timeouts", "ageings",
                                                                "restarts", "marks",      "crashes",  "changes"};

template <class Names>
std::size_t position_of(std::string_view name, const Names& names) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) throw std::logic_error("unknown in a configuration: " + std::string(name));
    return static_cast<std::size_t>(found - names.begin());
}

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view blanks = " \n";
    text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
    return text.substr(0, text.find_last_not_of(blanks) + 1);
}

// Divides "a, b" at each separator, without blanks around the parts.
std::vector<std::string_view> parts_of(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(separator), text.size());
        parts.push_back(trimmed(text.substr(0, end)));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return parts;
}

Number number_in(std::string_view text) { return text.empty() ? 1 : std::stoul(std::string(text), nullptr, 0); }

FaultBudget budget_of(std::string_view text) {
    FaultBudget budget{};
    for (const std::string_view part : parts_of(text, ',')) {
        if (part.empty()) continue;
        const auto words = parts_of(part, ' ');
        budget[position_of(words.front(), fault_names)] = static_cast<std::uint8_t>(number_in(words.back()));
    }
    return budget;
}

void apply(std::string_view name, std::string_view value, ConfigurationEntry& entry) {
    Configuration& configuration = entry.configuration;
    if (name == "long") {
        entry.is_long = true;
    } else if (name == "units") {
        for (const std::string_view unit : parts_of(value, '+')) {
            const bool direct = unit == "direct";
            const auto workers = static_cast<std::uint8_t>(direct ? 1 : number_in(unit));
            configuration.units.push_back({.workers = workers, .direct = direct});
        }
    } else if (name == "tensors") {
        for (const std::string_view fragments : parts_of(value, '+')) {
            configuration.tensors.push_back(static_cast<std::uint8_t>(number_in(fragments)));
        }
    } else if (name == "window") {
        configuration.window_log2 = static_cast<std::uint8_t>(std::countr_zero(number_in(value)));
    } else if (name == "values") {
        configuration.values = static_cast<Values>(position_of(value, value_names));
    } else {
        const auto found = std::ranges::find(settings, name, &Setting::name);
        if (found == settings.end()) throw std::logic_error("unknown in a configuration: " + std::string(name));
        found->set(configuration, number_in(value));
    }
}

void read_settings(std::string_view text, ConfigurationEntry& entry) {
    const auto parts = parts_of(text, '|');
    for (const std::string_view setting : parts_of(parts[0], ',')) {
        const std::size_t blank = std::min(setting.find(' '), setting.size());
        apply(setting.substr(0, blank), trimmed(setting.substr(blank)), entry);
    }
    if (parts.size() > 1) entry.full = budget_of(parts[1]);
    if (parts.size() > 2) entry.quick = budget_of(parts[2]);
}

}  // namespace

// An entry begins with its name. The lines below it are indented, and read as one.
std::vector<ConfigurationEntry> read_configurations(std::string_view table) {
    std::vector<ConfigurationEntry> entries;
    while (!table.empty()) {
        const std::size_t end = std::min(table.find('\n'), table.size());
        const std::string_view line = table.substr(0, end);
        table.remove_prefix(std::min(end + 1, table.size()));
        if (line.empty() || line.front() == '#') continue;
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos) throw std::logic_error("a configuration without purpose");
        std::size_t size = 0;
        while (table.substr(size).starts_with(' ')) size = std::min(table.find('\n', size), table.size() - 1) + 1;
        ConfigurationEntry& entry = entries.emplace_back();
        entry.configuration.name = line.substr(0, colon);
        entry.configuration.what = trimmed(line.substr(colon + 1));
        read_settings(table.substr(0, size), entry);
        table.remove_prefix(size);
    }
    return entries;
}

}  // namespace atp::check
