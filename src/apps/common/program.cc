// SPDX-License-Identifier: Apache-2.0
#include "apps/common/program.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iterator>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/common/command_text.h"
#include "apps/common/config_file.h"
#include "apps/common/description.h"
#include "apps/common/output.h"
#include "base/suggestion.h"

namespace atp::apps {
namespace {

std::vector<std::string> names_of_commands(const CLI::App& program) {
    std::vector<std::string> names;
    for (const CLI::App* command : program.get_subcommands({})) names.push_back(command->get_name());
    return names;
}

std::vector<std::string> names_of_flags(const CLI::App& command) {
    std::vector<std::string> all;
    for (const CLI::Option* option : command.get_options()) {
        if (!option->get_group().empty()) std::ranges::copy(names_of(*option), std::back_inserter(all));
    }
    return all;
}

// Words that no flag, argument or subcommand took come before other errors: a flag with a typo is also missing.
std::string complaint(const CLI::App& program, const CLI::App& command, const CLI::ParseError& error) {
    const CLI::App& reader = command.remaining().empty() ? program : command;
    const std::vector<std::string> unknown = reader.remaining();
    if (unknown.empty()) return error.what();
    const bool in_command = &reader != &program;
    const auto flag = std::ranges::find_if(unknown, [](const std::string& word) { return word.starts_with("-"); });
    if (flag != unknown.end() && (in_command || flag == unknown.begin())) {
        const std::string name = flag->substr(0, flag->find('='));
        const std::string near = nearest(name, names_of_flags(reader));
        return fmt::format("unknown flag '{}'{}", name, near.empty() ? "" : "; did you mean " + near + "?");
    }
    if (in_command) return fmt::format("unexpected argument '{}'", unknown.front());
    const std::vector<std::string> names = names_of_commands(program);
    const std::string near = nearest(unknown.front(), names);
    const std::string hint = near.empty() ? fmt::format("; use one of {}", fmt::join(names, ", "))
                                          : fmt::format("; did you mean '{}'?", near);
    return fmt::format("unknown subcommand '{}'{}", unknown.front(), hint);
}

int misused(const CLI::App& program, const CLI::ParseError& error, const std::optional<ConfigFile>& file) {
    const auto parsed = program.get_subcommands();
    const CLI::App& command = parsed.empty() ? program : *parsed.front();
    const std::string path = program.get_name() + (parsed.empty() ? "" : " " + command.get_name());
    const std::string words = complaint(program, command, error);
    fmt::print(stderr, "{0}: {1}\nTry `{0} --help`.\n", path, file ? file->located(words) : words);
    return exit_misused;
}

// Puts the settings of the file that --config names, if the command has this flag, before what was typed.
tl::expected<std::optional<ConfigFile>, std::string> add_config(CLI::App& program, std::vector<std::string>& words) {
    if (words.empty()) return std::nullopt;
    const auto commands = program.get_subcommands({});
    const auto named =
        std::ranges::find(commands, words.front(), [](const CLI::App* each) { return each->get_name(); });
    auto* const command = named == commands.end() ? nullptr : dynamic_cast<Command*>(*named);
    if (command == nullptr || command->get_option_no_throw("--config") == nullptr) return std::nullopt;
    command->set_typed({words.begin() + 1, words.end()});
    auto file = ConfigFile::named_in(command->typed(), *command);
    if (!file) return tl::unexpected(fmt::format("{} {}: {}", program.get_name(), words.front(), file.error()));
    if (*file) {
        const std::vector<std::string> settings = (*file)->words();
        words.insert(words.begin() + 1, settings.begin(), settings.end());
    }
    return file;
}

// `name`: the subcommand is added, for errors.
int run(const ProgramText& text, std::span<const Register> commands, int argc, char** argv, std::string& name) {
    CLI::App program(text.description, text.name);
    program.require_subcommand(0, 1);  // a missing subcommand is reported below, an unknown one by its name
    program.set_help_flag("-h,--help", "Print this help");
    program.set_version_flag("--version", text.version, "Print the version");
    bool describes = false;
    program.add_flag("--describe", describes, "Print all commands as JSON")->group("");  // for tools/write_cli
    program.formatter_fn([](const CLI::App* self, const std::string& /*name*/, CLI::AppFormatMode /*mode*/) {
        return help_of_program(*self);
    });
    std::vector<std::pair<CLI::App*, std::function<int()>>> registered;
    for (const Register command : commands) {
        std::function<int()> body = command(program);
        registered.emplace_back(program.get_subcommands({}).back(), std::move(body));
    }
    std::vector<std::string> words(argv + 1, argv + std::max(argc, 1));
    const auto file = add_config(program, words);
    if (!file) {
        fmt::print(stderr, "{}\n", file.error());
        return exit_misused;
    }
    std::ranges::reverse(words);  // as CLI11 takes them
    try {
        program.parse(std::move(words));
    } catch (const CLI::Success& answered) {  // --help, --version
        return program.exit(answered);
    } catch (const CLI::ParseError& error) {
        return misused(program, error, *file);
    }
    if (describes) {
        fmt::print("{}\n", description_of(program));
        return exit_passed;
    }
    for (const auto& [subcommand, body] : registered) {
        if (!subcommand->parsed()) continue;
        name += " " + subcommand->get_name();
        return body();
    }
    fmt::print(stderr, "{0}: no subcommand given ({1})\nTry `{0} --help`.\n", text.name,
               fmt::join(names_of_commands(program), ", "));
    return exit_misused;
}

// If standard output failed, the result is lost.
int after_output(const std::string& name, int status) {
    if (show_output()) return status;
    fmt::print(stderr, "{}: standard output failed; the results are lost\n", name);
    return status == exit_passed ? exit_failed : status;
}

}  // namespace

int run_program(const ProgramText& text, std::span<const Register> commands, int argc, char** argv) {
    std::string name(text.name);
    try {
        const int status = run(text, commands, argc, argv, name);
        return after_output(name, status);
    } catch (const std::bad_alloc&) {
        fmt::print(stderr, "{}: out of memory\n", name);
    } catch (const std::exception& error) {
        if (std::ferror(stdout) != 0) return after_output(name, exit_failed);
        fmt::print(stderr, "{}: {}\n", name, error.what());
    }
    return exit_failed;
}

}  // namespace atp::apps
