// SPDX-License-Identifier: Apache-2.0
#include "apps/common/command_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <utility>

#include "base/units.h"

namespace atp::apps {
namespace {

constexpr std::size_t help_columns = 120;
constexpr std::size_t name_columns = 34;

constexpr std::array<ValueText, 5> value_texts{{{.name = "ADDRESS", .looks = address_forms},
                                                {.name = "SIZE", .looks = size_forms},
                                                {.name = "TIME", .looks = duration_forms},
                                                {.name = "RATE", .looks = rate_forms},
                                                {.name = "SHARE", .looks = percent_forms}}};

// Breaks lines between words. Further lines begin with the indent.
std::string wrapped(std::string_view text, std::size_t indent) {
    const std::string between = "\n" + std::string(indent, ' ');
    std::string lines;
    while (true) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        while (line.size() > help_columns - indent) {
            const std::size_t space = line.rfind(' ', help_columns - indent);
            if (space == std::string_view::npos) break;
            lines += std::string(line.substr(0, space)) + between;
            line.remove_prefix(space + 1);
        }
        lines += line;
        if (end == text.size()) return lines;
        lines += between;
        text.remove_prefix(end + 1);
    }
}

// A name, and what it means in the second column.
std::string entry(const std::string& name, std::string_view meaning) {
    std::string line = "  " + name;
    line += line.size() + 2 > name_columns ? "\n" + std::string(name_columns, ' ')
                                           : std::string(name_columns - line.size(), ' ');
    return line + wrapped(meaning, name_columns) + "\n";
}

bool is_word(std::string_view text) {
    const auto fits = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; };
    return !text.empty() && std::ranges::all_of(text, fits);
}

// The words of "a, b or c"; empty if a part is more than a word.
std::vector<std::string> words_of(std::string_view accepted) {
    std::vector<std::string> words;
    while (true) {
        const std::size_t end = std::min({accepted.find(", "), accepted.find(" or "), accepted.size()});
        const std::string_view word = accepted.substr(0, end);
        if (!is_word(word)) return {};
        words.emplace_back(word);
        if (end == accepted.size()) return words;
        accepted.remove_prefix(end + (accepted[end] == ',' ? 2 : 4));
    }
}

// Without what the name of the value says already.
std::string in_short(std::string_view accepted) {
    constexpr std::array<std::string_view, 2> of_number{"a whole number from ", "a number from "};
    constexpr std::array<std::string_view, 2> endless{" to 18446744073709551615", " to 4294967295"};
    if (accepted == wait_forms) return "above 0";
    for (const std::string_view vague : {"a path", "any ", "the name of "}) {
        if (accepted.starts_with(vague) && accepted.find(',') == std::string_view::npos) return {};
    }
    if (std::ranges::find(value_texts, accepted, &ValueText::looks) != value_texts.end()) return {};
    for (const std::string_view begin : of_number) {
        if (accepted.starts_with(begin)) accepted.remove_prefix(begin.size());
    }
    for (const std::string_view end : endless) {
        if (!accepted.ends_with(end)) continue;
        accepted.remove_suffix(end.size());
        return accepted == "0" ? std::string() : std::string(accepted) + " or more";
    }
    return std::string(accepted);
}

// All that the help says about a flag.
std::string full_text(const Command& command, const CLI::Option& option) {
    const FlagText text = command.text_of(&option);
    return fmt::format("{}{}{}{}", text.meaning, may_repeat(option) ? "; may be repeated" : "",
                       text.values.empty() ? "" : fmt::format(" ({})", text.values),
                       text.fallback.empty() ? "" : fmt::format(" [{}]", text.fallback));
}

std::string flag_label(const CLI::Option& option) {
    return fmt::format("{}{}{}", fmt::join(names_of(option), ", "),
                       takes_value(option) ? " " + option.get_type_name() : "",
                       option.get_required() ? " (required)" : "");
}

std::string sections_of_flags(const Command& command) {
    std::string text;
    for (const std::string& heading : command.get_groups()) {
        std::string entries;
        for (const CLI::Option* option : command.get_options()) {
            if (option->get_group() != heading || option->get_positional() || option == command.get_help_ptr())
                continue;
            entries += entry(flag_label(*option), full_text(command, *option));
        }
        if (!entries.empty()) text += fmt::format("\n{}:\n{}", heading, entries);
    }
    return text;
}

std::string section_of_arguments(const Command& command) {
    std::string text;
    for (const CLI::Option* option : command.get_options()) {
        if (option->get_positional()) text += entry(positional_usage(*option), full_text(command, *option));
    }
    return text.empty() ? text : "\nArguments:\n" + text;
}

std::string usage(const Command& command, const std::string& path) {
    std::string line = "Usage: " + path;
    for (const CLI::Option* option : command.get_options()) {
        if (option->get_required() && !option->get_positional()) {
            line += fmt::format(" {} {}", names_of(*option).front(), option->get_type_name());
        }
    }
    line += " [FLAGS]";
    for (const CLI::Option* option : command.get_options()) {
        if (option->get_positional()) line += " " + positional_usage(*option);
    }
    return line;
}

}  // namespace

FlagText flag_text(std::string_view help, std::string_view accepted) {
    FlagText text;
    if (help.ends_with(']')) {
        std::size_t begin = help.size() - 1;
        for (int open = 1; open != 0 && begin != 0;) {
            --begin;
            open += help[begin] == ']' ? 1 : help[begin] == '[' ? -1 : 0;
        }
        text.fallback = help.substr(begin + 1, help.size() - begin - 2);
        help = help.substr(0, begin);
        while (help.ends_with(' ') || help.ends_with('.')) help.remove_suffix(1);
    }
    text.meaning = help;
    text.values = in_short(accepted);
    text.words = words_of(accepted);
    return text;
}

Command::Command(const std::string& name, const std::string& description, CLI::App* program)
    : CLI::App(description, name, program) {
    if (program == nullptr) set_help_flag("-h,--help", "Print this help");
    formatter_fn([this](const CLI::App* /*this*/, const std::string& path, CLI::AppFormatMode /*mode*/) {
        return help_text(path);
    });
}

Command& Command::add(CLI::App& program, const std::string& name, const std::string& description) {
    auto command = std::make_shared<Command>(name, description, &program);
    Command& added = *command;
    program.add_subcommand(std::move(command));
    return added;
}

void Command::describe(const CLI::Option* option, FlagText text) { texts_[option] = std::move(text); }

void Command::add_example(std::string line, std::string effect) {
    examples_.push_back({.line = std::move(line), .effect = std::move(effect)});
}

FlagText Command::text_of(const CLI::Option* option) const {
    const auto found = texts_.find(option);
    return found == texts_.end() ? flag_text(option->get_description(), {}) : found->second;
}

std::vector<ValueText> Command::values() const {
    std::vector<ValueText> found;
    for (const ValueText& value : value_texts) {
        const bool used = std::ranges::any_of(get_options(), [&](const CLI::Option* option) {
            return option->get_type_name().find(value.name) != std::string::npos;
        });
        if (used) found.push_back(value);
    }
    return found;
}

std::string Command::help_text(const std::string& path) const {
    std::string text = wrapped(get_description(), 0) + "\n\n" + wrapped(usage(*this, path), 4) + "\n";
    text += section_of_arguments(*this) + sections_of_flags(*this);
    text += "\nOther:\n" + entry("-h, --help", get_help_ptr()->get_description());
    if (const auto used = values(); !used.empty()) {
        text += "\nValues:\n";
        for (const ValueText& value : used) text += entry(std::string(value.name), value.looks);
    }
    if (!examples_.empty()) text += examples_.size() == 1 ? "\nExample:\n" : "\nExamples:\n";
    for (const ExampleText& example : examples_) {
        text += fmt::format("  {}\n      {}\n", example.line, wrapped(example.effect, 6));
    }
    if (!files_.empty()) text += "\n" + files_;
    std::string status;
    for (const ExitText& exit : exit_)
        status += fmt::format("{}{} {}", status.empty() ? "" : ", ", exit.status, exit.when);
    if (!status.empty()) text += "\n" + wrapped("Exit status: " + status + ".", 0) + "\n";
    return text;
}

std::vector<std::string> names_of(const CLI::Option& option) {
    std::vector<std::string> names;
    for (const std::string& name : option.get_snames()) names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
    return names;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() != 0; }

bool may_repeat(const CLI::Option& option) {
    return takes_value(option) && option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll &&
           !option.get_positional();
}

std::string positional_usage(const CLI::Option& option) {
    const bool many = option.get_expected_max() > 1;
    const std::string name = option.get_type_name() + (many ? "..." : "");
    return option.get_required() ? name : "[" + name + "]";
}

std::string help_of_program(const CLI::App& program) {
    std::string text = wrapped(program.get_description(), 0) + "\n\nUsage: " + program.get_name();
    text += " SUBCOMMAND [FLAGS]\n\nSubcommands:\n";
    for (const CLI::App* command : program.get_subcommands({})) {
        text += entry(command->get_name(), command->get_description());
    }
    text += "\nFlags:\n";
    for (const CLI::Option* option : program.get_options()) {
        if (!option->get_group().empty()) text += entry(flag_label(*option), option->get_description());
    }
    return text + fmt::format("\n`{} SUBCOMMAND --help` describes a subcommand.\n", program.get_name());
}

}  // namespace atp::apps
