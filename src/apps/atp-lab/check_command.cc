// SPDX-License-Identifier: Apache-2.0
#include "apps/atp-lab/check_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/common/flags.h"
#include "apps/common/progress.h"
#include "base/text.h"
#include "check/breaks_table.h"
#include "check/explore.h"
#include "check/suite.h"

namespace atp::apps {
namespace {

using Json = nlohmann::ordered_json;

struct CheckOptions {
    bool list = false;
    bool list_breaks = false;
    bool quick = false;
    bool json = false;
    std::optional<check::Protocol> protocol;  // nullopt: all
    std::string only;                         // empty: all
    std::string break_name;                   // empty: none; "all": each
    unsigned threads = std::max(1U, std::thread::hardware_concurrency());
    std::uint64_t max_states = 200'000'000;
};

constexpr std::string_view every_break = "all";

template <class Items>
std::string names_of(const Items& items) {
    std::string names;
    for (const auto& item : items) names += fmt::format("{}{}", names.empty() ? "" : ", ", item.name);
    return names;
}

void print_trace(const check::Violation& violation) {
    fmt::print("  {}\n", violation.what);
    for (std::size_t i = 0; i < violation.trace.size(); ++i) {
        if (i == violation.healed_from) fmt::print("  from here on no faults, everything in the order it was sent:\n");
        fmt::print("  {:3} {}\n", i + 1, violation.trace[i].text);
    }
}

Json to_json(const check::Report& report) {
    Json json{{"configuration", report.configuration},
              {"states", report.states},
              {"transitions", report.transitions},
              {"depth", report.depth},
              {"exhausted", report.exhausted},
              {"violations", report.violation ? 1 : 0},
              {"seconds", report.seconds}};
    if (!report.violation) return json;
    json["violation"] = report.violation->what;
    json["healed_from"] = report.violation->healed_from;
    for (const check::TraceStep& step : report.violation->trace) json["trace"].push_back(step.text);
    return json;
}

constexpr const char* row_format = "{:<20} {:>12} {:>6} {:>11} {:>9}\n";

void print_row(const check::Report& report) {
    fmt::print(row_format, report.configuration, fmt::format("{}{}", report.states, report.exhausted ? "" : "+"),
               report.depth, report.violation ? 1 : 0, fmt::format("{:.2f}", report.seconds));
    std::fflush(stdout);
}

void print_summary(const std::vector<check::Report>& reports) {
    std::uint64_t states = 0;
    std::size_t violations = 0;
    std::size_t cut = 0;
    double missed = 0;
    for (const check::Report& report : reports) {
        states += report.states;
        violations += report.violation ? 1U : 0U;
        cut += report.exhausted || report.violation ? 0U : 1U;
        missed += report.missed_probability();
    }
    fmt::print("{} states in {}, {}; probability of a missed state {:.1e}\n", states,
               counted(reports.size(), "configuration"), counted(violations, "violation"), missed);
    if (cut != 0) fmt::print("{} (+) stopped at --max-states\n", counted(cut, "configuration"));
    for (const check::Report& report : reports) {
        if (!report.violation) continue;
        fmt::print("\n{}:\n", report.configuration);
        print_trace(*report.violation);
    }
}

std::vector<check::Report> explore(const std::vector<check::Task>& tasks, const CheckOptions& options, bool rows) {
    Progress line;
    check::SuiteOptions suite{
        .threads = options.threads, .max_states = options.max_states, .progress = {}, .ended = {}};
    suite.progress = [&](std::string_view name, const check::Progress& progress) {
        line.show(fmt::format("{}: {} states, depth {}, {} waiting", name, progress.states, progress.depth,
                              progress.frontier));
    };
    suite.ended = [&](const check::Report& report) {
        line.clear();
        if (rows) print_row(report);
    };
    std::vector<check::Report> reports = check::run_suite(tasks, suite);
    line.clear();
    return reports;
}

// Configurations that the flags select.
std::vector<const check::Configuration*> chosen(const CheckOptions& options) {
    std::vector<const check::Configuration*> all;
    for (const check::Configuration& configuration :
         check::configurations(options.quick ? check::Extent::quick : check::Extent::full)) {
        const bool other_protocol = options.protocol && *options.protocol != configuration.protocol;
        const bool other_name = !options.only.empty() && options.only != configuration.name;
        if (!other_protocol && !other_name) all.push_back(&configuration);
    }
    return all;
}

int run_shipped(const CheckOptions& options) {
    std::vector<check::Task> tasks;
    for (const check::Configuration* configuration : chosen(options)) {
        tasks.push_back({configuration, check::shipped::explore});
    }
    if (!options.json) fmt::print(row_format, "configuration", "states", "depth", "violations", "seconds");
    const std::vector<check::Report> reports = explore(tasks, options, !options.json);
    if (options.json) {
        Json all = Json::array();
        for (const check::Report& report : reports) all.push_back(to_json(report));
        fmt::print("{}\n", all.dump(2));
    } else {
        print_summary(reports);
    }
    const bool sound = std::ranges::none_of(reports, [](const check::Report& r) { return r.violation.has_value(); });
    return sound ? exit_passed : exit_failed;
}

check::Task task_of(const check::Break& broken, const CheckOptions& options) {
    const std::string_view name = options.only.empty() ? broken.configuration : std::string_view(options.only);
    return {check::find_configuration(name, check::Extent::quick),
            [number = broken.number](const check::Configuration& configuration, const check::Limits& limits) {
                return check::breakable::explore(configuration, limits, number);
            }};
}

Json to_json(const check::Break& broken, const check::Report& report) {
    Json json{{"break", broken.name}, {"hazard", broken.hazard}, {"what", broken.what}};
    json.update(to_json(report));
    return json;
}

int run_one_break(const check::Break& broken, const CheckOptions& options) {
    const check::Report report = explore({task_of(broken, options)}, options, false).front();
    if (options.json) {
        fmt::print("{}\n", to_json(broken, report).dump(2));
    } else {
        fmt::print("{}: {} (hazard {})\n{}: {} states, depth {}, {:.2f} s\n", broken.name, broken.what, broken.hazard,
                   report.configuration, report.states, report.depth, report.seconds);
        if (report.violation) {
            print_trace(*report.violation);
        } else {
            fmt::print("  not found\n");
        }
    }
    return report.violation ? exit_failed : exit_passed;
}

int run_every_break(const CheckOptions& options) {
    std::vector<check::Task> tasks;
    for (const check::Break& broken : check::breaks()) tasks.push_back(task_of(broken, options));
    const std::vector<check::Report> reports = explore(tasks, options, false);
    std::size_t missed = 0;
    Json all = Json::array();
    constexpr const char* row = "{:<24} {:>6} {:<19} {:>9} {:>6} {:>8}  {}\n";
    if (!options.json) fmt::print(row, "break", "hazard", "configuration", "states", "steps", "seconds", "found");
    for (std::size_t i = 0; i < reports.size(); ++i) {
        const check::Break& broken = check::breaks()[i];
        const auto& found = reports[i].violation;
        missed += found ? 0U : 1U;
        all.push_back(to_json(broken, reports[i]));
        if (options.json) continue;
        fmt::print(row, broken.name, broken.hazard, reports[i].configuration, reports[i].states,
                   found ? found->trace.size() : 0, fmt::format("{:.2f}", reports[i].seconds),
                   found ? found->what : "MISSED");
    }
    if (options.json) {
        fmt::print("{}\n", all.dump(2));
    } else {
        fmt::print("{} injected faults, {} missed\n", reports.size(), missed);
    }
    return missed == 0 ? exit_passed : exit_failed;
}

Json to_json(const check::Configuration& configuration) {
    Json faults;
    for (const auto& [name, fault] : {std::pair("losses", check::Fault::loss),
                                      {"duplicates", check::Fault::duplicate},
                                      {"timeouts", check::Fault::timeout},
                                      {"ageings", check::Fault::ageing},
                                      {"restarts", check::Fault::restart},
                                      {"marks", check::Fault::mark},
                                      {"crashes", check::Fault::crash},
                                      {"changes", check::Fault::change}}) {
        faults[name] = unsigned{configuration.budget_of(fault)};
    }
    return {{"name", configuration.name}, {"what", configuration.what}, {"faults", faults}};
}

int list_configurations(const CheckOptions& options) {
    if (options.json) {
        Json all = Json::array();
        for (const check::Configuration* configuration : chosen(options)) all.push_back(to_json(*configuration));
        fmt::print("{}\n", all.dump(2));
        return exit_passed;
    }
    for (const check::Configuration* configuration : chosen(options)) {
        const auto left = [&](check::Fault fault) { return unsigned{configuration->budget_of(fault)}; };
        fmt::print(
            "{:<20} {}\n{:20}   faults: {} losses, {} duplicates, {} timeouts, {} ageings, {} restarts, {} marks, "
            "{} crashes, {} changes\n",
            configuration->name, configuration->what, "", left(check::Fault::loss), left(check::Fault::duplicate),
            left(check::Fault::timeout), left(check::Fault::ageing), left(check::Fault::restart),
            left(check::Fault::mark), left(check::Fault::crash), left(check::Fault::change));
    }
    return exit_passed;
}

int list_breaks(const CheckOptions& options) {
    if (options.json) {
        Json all = Json::array();
        for (const check::Break& broken : check::breaks()) {
            all.push_back({{"name", broken.name}, {"hazard", broken.hazard}, {"what", broken.what}});
        }
        fmt::print("{}\n", all.dump(2));
        return exit_passed;
    }
    for (const check::Break& broken : check::breaks()) {
        fmt::print("{:<24} hazard {:>2}: {}\n", broken.name, broken.hazard, broken.what);
    }
    return exit_passed;
}

int run_check(const CheckOptions& options) {
    if (options.list) return list_configurations(options);
    if (options.list_breaks) return list_breaks(options);
    if (options.break_name == every_break) return run_every_break(options);
    if (!options.break_name.empty()) return run_one_break(*check::find_break(options.break_name), options);
    return run_shipped(options);
}

}  // namespace

std::function<int()> register_check(CLI::App& program) {
    auto options = std::make_shared<CheckOptions>();
    Command& command =
        Command::add(program, "check",
                     "Visit and check every state that small configurations of the shipped state machines can reach");
    Flags flags(command, "Exploration and output");
    flags.flag("--list", options->list, "List the configurations and their faults");
    flags.flag("--quick", options->quick, "Explore with fewer faults, in at most 1 minute");
    const auto configuration = [](std::string_view name) -> std::optional<std::string> {
        if (check::find_configuration(name, check::Extent::full) == nullptr) return std::nullopt;
        return std::string(name);
    };
    CLI::Option* only = flags.parsed("--only", options->only, "NAME", configuration,
                                     fmt::format("one of {}", names_of(check::configurations(check::Extent::full))),
                                     "Explore one configuration only [all]");
    const auto protocol = [](std::string_view name) -> std::optional<check::Protocol> {
        if (name == "atp") return check::Protocol::atp;
        if (name == "switchml") return check::Protocol::switchml;
        if (name == "joining") return check::Protocol::joining;
        if (name == "host") return check::Protocol::host;
        if (name == "formation") return check::Protocol::formation;
        return std::nullopt;
    };
    flags
        .parsed("--protocol", options->protocol, "NAME", protocol, "atp, switchml, joining, host or formation",
                "Explore the configurations of one protocol only [all]")
        ->excludes(only);
    flags.number("--max-states", options->max_states, 1, 0xfffffff0U,
                 "Most states of each configuration; the exploration stops there [200 million]");
    flags.number("--threads", options->threads, 1, 1024, "Configurations explored in parallel [all cores]");
    flags.flag("--json", options->json, "Print one JSON value instead of tables");
    const auto injected_fault = [](std::string_view name) -> std::optional<std::string> {
        if (name != every_break && check::find_break(name) == nullptr) return std::nullopt;
        return std::string(name);
    };
    flags.parsed("--break", options->break_name, "NAME", injected_fault,
                 fmt::format("all, or one of {}", names_of(check::breaks())),
                 "Explore machines with an injected fault; if found, print the trace and exit with 1. all: exit with 1 "
                 "if one is missed [none]");
    flags.flag("--list-breaks", options->list_breaks, "List the injected faults");
    command.add_example("atp-lab check --quick --protocol joining",
                        "Check how workers join, with few faults, in at most a minute.");
    command.set_exit({{exit_passed, "every invariant held in all states visited"},
                      {exit_failed, "a violation, or with --break all a fault that was missed"},
                      {exit_misused, "bad arguments"},
                      {exit_interrupted, "after Ctrl-C"}});
    return [options] { return run_check(*options); };
}

}  // namespace atp::apps
