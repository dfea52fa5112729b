// SPDX-License-Identifier: Apache-2.0
#include "apps/common/program.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iterator>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/common/command_text.h"
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

int misused(const CLI::App& program, const CLI::ParseError& error) {
    const auto parsed = program.get_subcommands();
    const CLI::App& command = parsed.empty() ? program : *parsed.front();
    const std::string path = program.get_name() + (parsed.empty() ? "" : " " + command.get_name());
    fmt::print(stderr, "{0}: {1}\nTry `{0} --help`.\n", path, complaint(program, command, error));
    return exit_misused;
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
    try {
        program.parse(argc, argv);
    } catch (const CLI::Success& answered) {  // --help, --version
        return program.exit(answered);
    } catch (const CLI::ParseError& error) {
        return misused(program, error);
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
