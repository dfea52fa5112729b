// SPDX-License-Identifier: Apache-2.0
#include "apps/common/program.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/common/output.h"

namespace atp::apps {
namespace {

constexpr std::size_t help_columns = 120;
constexpr std::size_t name_columns = 34;

// Lines break between words.
std::string wrapped(std::string_view text, std::size_t columns) {
    std::string lines;
    while (text.size() > columns) {
        const std::size_t space = text.rfind(' ', columns);
        if (space == std::string_view::npos) break;
        lines += std::string(text.substr(0, space)) + "\n";
        text.remove_prefix(space + 1);
    }
    return lines += text;
}

// Behind the name of a flag: its value. Which flags need or exclude each other is in their texts, and in errors.
class HelpFormatter final : public CLI::Formatter {
  public:
    HelpFormatter() { column_width(name_columns); }
    // Without the remark that --no-NAME is false.
    std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
        std::string name = CLI::Formatter::make_option_name(option, is_positional);
        constexpr std::string_view remark = "{false}";
        if (const std::size_t at = name.find(remark); at != std::string::npos) name.erase(at, remark.size());
        return name;
    }
    std::string make_option_desc(const CLI::Option* option) const override {
        return wrapped(option->get_description(), help_columns - name_columns);
    }
    std::string make_option_opts(const CLI::Option* option) const override {
        std::string text;
        const bool has_value = option->get_type_size() != 0 && !option->get_positional();
        if (has_value) text += " " + option->get_type_name();
        if (option->get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
        if (option->get_required()) text += " (required)";
        return text;
    }
};

// `name`: the subcommand is added, for errors.
int run(const ProgramText& text, std::span<const Register> commands, int argc, char** argv, std::string& name) {
    CLI::App program(text.description, text.name);
    program.require_subcommand(0, 1);  // a missing subcommand is reported below, an unknown one by its name
    program.set_version_flag("--version", text.version);
    program.formatter(std::make_shared<HelpFormatter>());
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
        fmt::print(stderr, "{}: {}\nTry --help.\n", text.name, error.what());
        return exit_misused;
    }
    std::string names;
    for (const auto& [subcommand, body] : registered) {
        if (subcommand->parsed()) {
            name += " " + subcommand->get_name();
            return body();
        }
        names += fmt::format("{}{}", names.empty() ? "" : " or ", subcommand->get_name());
    }
    fmt::print(stderr, "{}: the subcommand is missing; use {}\nTry --help.\n", text.name, names);
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
