// SPDX-License-Identifier: Apache-2.0
#include "apps/common/description.h"

#include <nlohmann/json.hpp>

#include "apps/common/command_text.h"
#include "base/version.h"

namespace atp::apps {
namespace {

using JsonText = nlohmann::ordered_json;

JsonText json_of(const CLI::Option& option, const FlagText& text) {
    JsonText json{{"names", names_of(option)}};
    if (takes_value(option)) {
        json["placeholder"] = option.get_type_name();
        json["repeats"] = may_repeat(option);
        json["values"] = text.values;
        json["words"] = text.words;
    }
    json.update({{"required", option.get_required()}, {"help", text.meaning}, {"default", text.fallback}});
    return json;
}

JsonText json_of(const Command& command) {
    JsonText arguments = JsonText::array();
    JsonText groups = JsonText::array();
    for (const CLI::Option* option : command.get_options()) {
        if (!option->get_positional()) continue;
        const FlagText text = command.text_of(option);
        arguments.push_back({{"usage", positional_usage(*option)},
                             {"placeholder", option->get_type_name()},
                             {"many", option->get_expected_max() > 1},
                             {"required", option->get_required()},
                             {"help", text.meaning},
                             {"values", text.values},
                             {"words", text.words},
                             {"default", text.fallback}});
    }
    for (const std::string& heading : command.get_groups()) {
        JsonText flags = JsonText::array();
        for (const CLI::Option* option : command.get_options()) {
            if (option->get_group() != heading || option->get_positional() || option == command.get_help_ptr())
                continue;
            flags.push_back(json_of(*option, command.text_of(option)));
        }
        if (!flags.empty()) groups.push_back({{"heading", heading}, {"flags", std::move(flags)}});
    }
    JsonText values = JsonText::array();
    for (const ValueText& value : command.values()) values.push_back({{"name", value.name}, {"looks", value.looks}});
    JsonText examples = JsonText::array();
    for (const ExampleText& example : command.examples()) {
        examples.push_back({{"line", example.line}, {"effect", example.effect}});
    }
    JsonText exit = JsonText::array();
    for (const ExitText& one : command.exit_status()) exit.push_back({{"status", one.status}, {"when", one.when}});
    const CLI::Option& help = *command.get_help_ptr();
    return {{"name", command.get_name()},
            {"description", command.get_description()},
            {"arguments", std::move(arguments)},
            {"groups", std::move(groups)},
            {"help", json_of(help, {.meaning = help.get_description()})},
            {"values", std::move(values)},
            {"examples", std::move(examples)},
            {"files", command.files()},
            {"exit", std::move(exit)}};
}

}  // namespace

std::string description_of(const CLI::App& program) {
    JsonText flags = JsonText::array();
    for (const CLI::Option* option : program.get_options()) {
        if (!option->get_group().empty()) flags.push_back(json_of(*option, {.meaning = option->get_description()}));
    }
    JsonText commands = JsonText::array();
    for (const CLI::App* command : program.get_subcommands({})) {
        commands.push_back(json_of(dynamic_cast<const Command&>(*command)));
    }
    return JsonText{{"name", program.get_name()},
                    {"description", program.get_description()},
                    {"version", software_version()},
                    {"flags", std::move(flags)},
                    {"commands", std::move(commands)}}
        .dump(1);
}

}  // namespace atp::apps
